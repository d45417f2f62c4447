"""A deadline for the next sign of work of a model, kept by the Clock port.

A cancel scope's own deadline runs on the event loop's time, which a test cannot move; and the
pings of a provider keep every socket time-out quiet. So one task per stream watches.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

import anyio

from mira.clock import Clock

T = TypeVar("T")


class Stalled(Exception):
    """The deadline passed while waiting. Never leaves mira.llm."""


class Watch:
    """Waits for awaitables, but not past a deadline. One wait at a time.

    `step` is the shortest time allowed to any wait, in seconds: the watcher looks up at least
    that often, and so never sleeps past a deadline that was set while it slept.
    """

    def __init__(self, clock: Clock, step: float) -> None:
        self._clock = clock
        self._step = step
        self._due = 0.0
        self._scope: anyio.CancelScope | None = None

    async def wait(self, awaitable: Awaitable[T], due: float) -> T:
        """Await it. Raises Stalled, having cancelled it, if `due` on the clock passes first."""
        self._due = due
        with anyio.CancelScope() as scope:
            self._scope = scope
            try:
                return await awaitable
            finally:
                self._scope = None
        raise Stalled

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            left = self._due - self._clock.monotonic()
            if left <= 0 and self._scope is not None:
                self._scope.cancel()
            await self._clock.sleep(min(self._step, left) if left > 0 else self._step)
