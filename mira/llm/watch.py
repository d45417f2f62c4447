"""A deadline for the next sign of work of a model, kept by the Clock port.

A cancel scope's own deadline runs on the event loop's time, which a test cannot move; and the
pings of a provider keep every socket time-out quiet.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import TypeVar

import anyio

from mira.clock import AlarmClock

T = TypeVar("T")


class Stalled(Exception):
    """The deadline passed while waiting. Never leaves mira.llm."""


class Watch:
    """Waits for awaitables, but not past a deadline. One wait at a time.

    `wait` is for one awaitable. Where hundreds follow one another, `guard` once and `until` before
    each cost a tenth of that.
    """

    def __init__(self, clock: AlarmClock) -> None:
        self._clock = clock
        self._due = inf
        self._scope: anyio.CancelScope | None = None
        #: The one alarm: when it rings, and what stops it. It is left as it is when the deadline
        #: moves on, and looks for itself when it rings.
        self._planned = inf
        self._stop: Callable[[], None] | None = None

    async def wait(self, awaitable: Awaitable[T], due: float) -> T:
        """Await it. Raises Stalled, having cancelled it, if `due` on the clock passes first."""
        with self.guard():
            self.until(due)
            found = await awaitable
            self.rest()
            return found

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Inside, waits that were announced by `until` are cut short. Raises Stalled then.

        An async generator may yield inside if it rests: what its consumer awaits is not cut.
        """
        with anyio.CancelScope() as scope:
            self._scope = scope
            try:
                yield
                return
            finally:
                self._scope, self._due = None, inf
        raise Stalled

    def until(self, due: float) -> None:
        """What is awaited from now on may take until then."""
        self._due = due
        if due < self._planned:
            self.close()
            self._plan(due)

    def rest(self) -> None:
        """The wait is over. Raises Stalled if it was cut short in the moment of its end."""
        self._due = inf
        if self._scope is not None and self._scope.cancel_called:
            raise Stalled

    def close(self) -> None:
        """Stop the alarm. Idempotent."""
        if self._stop is not None:
            self._stop()
        self._stop, self._planned = None, inf

    def _plan(self, due: float) -> None:
        self._planned = due
        self._stop = self._clock.later(due - self._clock.monotonic(), self._ring)

    def _ring(self) -> None:
        self._stop, self._planned = None, inf
        if self._due > self._clock.monotonic():
            if self._due < inf:
                self._plan(self._due)
        elif self._scope is not None:
            self._scope.cancel()
