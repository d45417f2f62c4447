"""The command `mira`; also `python -m mira`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and end the process with its exit code (see mira.cli)."""
    # Imported here, so that a child process that only needs the package pays for nothing.
    from mira.cli.main import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
