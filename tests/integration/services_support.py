"""What the tests of the services share: homes that the database's account can enter, processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mira.services import process_table

ROOT = os.geteuid() == 0

#: Starts both servers on the home in argv[1], prints their process ids, and runs until SIGTERM.
SERVE = """
import asyncio, json, os, signal, sys
from pathlib import Path
import uvloop
from mira.clock import SystemClock
from mira.errors import StartupRefused
from mira.services.home import Home
from mira.services.postgres import EmbeddedPostgres
from mira.services.valkey import EmbeddedValkey
from mira.telemetry import configure

async def main():
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    home = Home(Path(sys.argv[1]))
    postgres = EmbeddedPostgres(home, clock=SystemClock(), durable=False)
    valkey = EmbeddedValkey(home, clock=SystemClock())
    await postgres.start()
    await valkey.start()
    print(json.dumps({"self": os.getpid(), "postgres": postgres.pid, "valkey": valkey.pid}))
    sys.stdout.flush()
    await stop.wait()
    await valkey.stop()
    await postgres.stop()
    home.close()

configure("error")
try:
    asyncio.Runner(loop_factory=uvloop.new_event_loop).run(main())
except StartupRefused as refusal:
    print(json.dumps({"refused": refusal.detail, "remedy": refusal.remedy}))
"""


@contextmanager
def short_directory() -> Iterator[Path]:
    """A directory with a short path that any account may pass through, removed after use."""
    path = Path(tempfile.mkdtemp(prefix="mira-test-", dir="/tmp"))
    path.chmod(0o711)
    try:
        yield path
    finally:
        _remove(path)


def _remove(path: Path, within: float = 20.0) -> None:
    """Remove a directory in which servers whose parent was killed may still be shutting down."""
    until = time.monotonic() + within
    while path.exists():
        try:
            shutil.rmtree(path)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


@contextmanager
def serving(home: Path, prefix: tuple[str, ...] = ()) -> Iterator[dict[str, Any]]:
    """Another process that serves on `home`; yields what it printed. Killed if still there."""
    process = subprocess.Popen(
        [*prefix, sys.executable, "-c", SERVE, str(home)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def gone(*pids: int, within: float = 20.0) -> bool:
    """Wait until none of the processes is running; whether that came true."""
    until = time.monotonic() + within
    while any(running(pid) for pid in pids):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def running(pid: int) -> bool:
    """Whether there is such a process, and it is not dead and merely unreaped."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def working_in(directory: Path) -> list[int]:
    """The processes whose working directory is `directory`: the servers of a data directory."""
    return process_table.processes(process_table.working_in(directory))
