"""The one sleeper: every deadline of the engine.

Deadlines are kept in buckets by the tick in which they fall, so that setting and clearing one is
a set operation, however many there are. Only this part sleeps, and only until the first bucket
that is not empty: what is idle costs no wake-ups.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil
from typing import Protocol

from anyio import CancelScope

from mira.clock import Clock

from .backend import Backend, Bell

#: Seconds. Deadlines within 10 s are kept to this; longer ones to 1% of the wait.
TICK = 0.01


class Expiring(Protocol):
    def expire(self) -> None:
        """The time has come, or a little later; never before. Does not raise."""
        ...


class Alarm:
    """Calls back when its time has come."""

    __slots__ = ("expire",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.expire = callback


class Ticker:
    """Tells things when their time has come, in the order of their ticks."""

    def __init__(self, clock: Clock, backend: Backend) -> None:
        self._clock = clock
        self._bell = Bell(backend)
        self._buckets: dict[int, set[Expiring]] = {}
        self._order: list[int] = []
        self._nap: CancelScope | None = None
        self._nap_until = 0
        self._closed = False

    def add(self, at: float, wait: float, item: Expiring) -> int:
        """Expire `item` at `at` (the clock's monotonic seconds), which is `wait` from now.

        Returns the bucket, to be given back to `discard`.
        """
        bucket = ceil(at / TICK)
        if wait > 10.0:
            coarse = 100 if wait > 100.0 else 10
            bucket += -bucket % coarse
        items = self._buckets.get(bucket)
        if items is not None:
            items.add(item)
            return bucket
        self._buckets[bucket] = {item}
        heapq.heappush(self._order, bucket)
        if self._nap is None:
            self._bell.ring()
        elif bucket < self._nap_until:
            self._nap.cancel()
        return bucket

    def after(self, wait: float, item: Expiring) -> int:
        """Expire `item` in `wait` seconds."""
        return self.add(self._clock.monotonic() + wait, wait, item)

    def discard(self, bucket: int, item: Expiring) -> None:
        """Forget an item. Does nothing if it has expired."""
        items = self._buckets.get(bucket)
        if items is not None:
            items.discard(item)

    @contextmanager
    def limit(self, seconds: float) -> Iterator[CancelScope]:
        """Cancel the block after `seconds`; `cancelled_caught` of the scope tells afterwards."""
        with CancelScope() as scope:
            alarm = Alarm(scope.cancel)
            bucket = self.after(seconds, alarm)
            try:
                yield scope
            finally:
                self.discard(bucket, alarm)

    async def run(self) -> None:
        """Sleep and tell, until closed."""
        while not self._closed:
            self._expire(self._clock.monotonic())
            if not self._order:
                await self._bell.wait()
                continue
            self._nap_until = self._order[0]
            left = self._nap_until * TICK - self._clock.monotonic()
            with CancelScope() as self._nap:
                # Never so short that adding it to the time changes nothing.
                await self._clock.sleep(max(left, TICK / 100))
            self._nap = None

    def close(self) -> None:
        """End `run`; what has not expired never does."""
        self._closed = True
        self._bell.ring()
        if self._nap is not None:
            self._nap.cancel()

    def _expire(self, now: float) -> None:
        while self._order:
            bucket = self._order[0]
            items = self._buckets[bucket]
            if bucket * TICK > now and items:
                return
            heapq.heappop(self._order)
            del self._buckets[bucket]
            for item in items:
                item.expire()
