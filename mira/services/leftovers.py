"""Ends servers of an earlier life that still hold a home.

A killed process takes its servers down through the kernel. What can remain is a server that is
still writing its last checkpoint, or one whose parent died in the instant before the kernel was
told. The caller holds the home's lock, so whatever runs on the home now belongs to nobody.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from anyio import to_thread

from mira.clock import Clock
from mira.errors import StartupRefused
from mira.telemetry import logger

log = logger("services")


async def end_leftovers(
    name: str,
    find: Callable[[], list[int]],
    steps: tuple[tuple[signal.Signals, float], ...],
    *,
    clock: Clock,
    first: Callable[[], int | None] = lambda: None,
) -> int:
    """End every process that `find` names and return how many there were.

    Each step sends its signal and gives its seconds. While `first` names one of them, signals
    go to that one alone: it will end the others in good order. Raises StartupRefused when some
    remain after the last step.
    """
    # Looking through /proc takes milliseconds: not in the event loop's thread.
    there = await to_thread.run_sync(find)
    count = len(there)
    for number, grace in steps:
        if not there:
            break
        leader = await to_thread.run_sync(first)
        targets = there
        if number is not signal.SIGKILL and leader in there:
            targets = [pid for pid in there if pid == leader]
        log.warning("leftover_server", service=name, pids=there, leader=leader, signal=number)
        for pid in targets:
            _signal(pid, number)
        until = clock.monotonic() + grace
        while (there := await to_thread.run_sync(find)) and clock.monotonic() < until:
            await clock.sleep(0.02)
    if there:
        raise StartupRefused(
            f"An earlier {name} (process {there[0]}) is still running and cannot be ended.",
            f"End it by hand: kill -9 {there[0]}",
        )
    return count


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
