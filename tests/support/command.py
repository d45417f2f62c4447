"""The real command line as a process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from tests.support.processes import ROOT

MIRA = (sys.executable, "-m", "mira")


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str


def mira(environment: Mapping[str, str], *arguments: str, stdin: bytes = b"") -> Done:
    """Run `mira` with `arguments` to its end. It never shows a traceback."""
    done = subprocess.run(
        [*MIRA, *arguments],
        cwd=ROOT, env=dict(environment), input=stdin, capture_output=True, timeout=90, check=False,
    )  # fmt: skip
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in out + err or environment.get("MIRA_LOG_LEVEL") == "debug", err
    return Done(done.returncode, out, err)
