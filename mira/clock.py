"""Time as a port: the only place that reads a clock or sleeps.

`SystemClock` is the real one; `ManualClock` is the double shipped for tests.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

import anyio


class Clock(Protocol):
    """What the rest of the house may know of time."""

    def now(self) -> datetime:
        """Return the present as an aware UTC datetime."""
        ...

    def monotonic(self) -> float:
        """Return seconds on a clock that never goes back; only differences mean something."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait at least `seconds`; a cancellation point even for 0."""
        ...


class AlarmClock(Clock, Protocol):
    """A clock that also calls back: where a task that sleeps would cost too much."""

    def later(self, seconds: float, act: Callable[[], None]) -> Callable[[], None]:
        """Call `act` in `seconds`, from the event loop; return what prevents that."""
        ...


class SystemClock:
    """The machine's clocks."""

    #: As it is, since the engine reads it for every message.
    monotonic = staticmethod(time.monotonic)

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)

    def later(self, seconds: float, act: Callable[[], None]) -> Callable[[], None]:
        """As AlarmClock.later; on asyncio alone."""
        return asyncio.get_running_loop().call_later(max(0.0, seconds), act).cancel


class ManualClock:
    """A clock that stands still until it is told to move.

    `sleep` and `later` wait until `advance` has moved the clock far enough. Waiters are woken in
    order of their due time.
    """

    def __init__(self, start: datetime | None = None) -> None:
        self._now = start or datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
        self._monotonic = 1000.0
        self._sleepers: list[tuple[float, int, Callable[[], object]]] = []
        self._order = 0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Move both clocks forward by `seconds` (not negative) and wake who is due."""
        if seconds < 0:
            raise ValueError("a clock only goes forward")
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds
        due = [s for s in self._sleepers if s[0] <= self._monotonic]
        self._sleepers = [s for s in self._sleepers if s[0] > self._monotonic]
        for _, _, wake in sorted(due, key=lambda s: s[:2]):
            wake()

    @property
    def sleeping(self) -> int:
        """How many are asleep now, alarms among them."""
        return len(self._sleepers)

    async def sleep(self, seconds: float) -> None:
        await anyio.lowlevel.checkpoint()
        if seconds <= 0:
            return
        event = anyio.Event()
        wake_not = self.later(seconds, event.set)
        try:
            await event.wait()
        finally:
            wake_not()

    def later(self, seconds: float, act: Callable[[], None]) -> Callable[[], None]:
        """As AlarmClock.later; `act` is called by `advance`."""
        self._order += 1
        entry = (self._monotonic + seconds, self._order, act)
        self._sleepers.append(entry)

        def prevent() -> None:
            if entry in self._sleepers:
                self._sleepers.remove(entry)

        return prevent
