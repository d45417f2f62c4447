"""What the tests of this folder look at: the files of the project, as version control sees them."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_MADE = {".git", ".venv", ".cache", ".mypy_cache", ".ruff_cache", ".hypothesis", "__pycache__"}


@cache
def files() -> tuple[Path, ...]:
    """Every file that is or would be under version control, relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0:
        found = [Path(name) for name in listed.stdout.split("\0") if name]
    else:  # unpacked from an archive: no version control to ask
        found = [path.relative_to(ROOT) for path in ROOT.rglob("*")]
        found = [path for path in found if not _MADE & set(path.parts)]
    return tuple(sorted(path for path in found if (ROOT / path).is_file()))


def sources(*tops: str) -> list[Path]:
    """The Python files under the given top-level folders."""
    return [path for path in files() if path.suffix == ".py" and path.parts[0] in tops]


def read(path: str | Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")
