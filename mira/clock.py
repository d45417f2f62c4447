"""Time as a port: the only place that reads a clock or sleeps.

`SystemClock` is the real one; `ManualClock` is the double shipped for tests.
"""

from __future__ import annotations

import time
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


class SystemClock:
    """The machine's clocks."""

    #: As it is, since the engine reads it for every message.
    monotonic = staticmethod(time.monotonic)

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


class ManualClock:
    """A clock that stands still until it is told to move.

    `sleep` waits until `advance` has moved the clock far enough. Waiters are woken in
    order of their due time.
    """

    def __init__(self, start: datetime | None = None) -> None:
        self._now = start or datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
        self._monotonic = 1000.0
        self._sleepers: list[tuple[float, int, anyio.Event]] = []
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
        for _, _, event in sorted(due, key=lambda s: s[:2]):
            event.set()

    @property
    def sleeping(self) -> int:
        """How many are asleep now."""
        return len(self._sleepers)

    async def sleep(self, seconds: float) -> None:
        await anyio.lowlevel.checkpoint()
        if seconds <= 0:
            return
        self._order += 1
        entry = (self._monotonic + seconds, self._order, anyio.Event())
        self._sleepers.append(entry)
        try:
            await entry[2].wait()
        finally:
            if entry in self._sleepers:
                self._sleepers.remove(entry)
