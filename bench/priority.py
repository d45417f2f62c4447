"""Real-time priority for a measurement on a machine that other work keeps busy."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PRIORITY = 20


@contextmanager
def real_time(processes: Iterable[int]) -> Iterator[None]:
    """Let all threads of this process and of `processes` go before everything else until the block
    ends. Needs root; without it nothing is changed."""
    threads = [thread for pid in (os.getpid(), *processes) for thread in _threads(pid)]
    _schedule(threads, os.SCHED_RR, PRIORITY)
    try:
        yield
    finally:
        _schedule(threads, os.SCHED_OTHER, 0)


def _schedule(threads: Iterable[int], policy: int, priority: int) -> None:
    for thread in threads:
        with suppress(OSError):
            os.sched_setscheduler(thread, policy, os.sched_param(priority))


def _threads(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir()]
    return []
