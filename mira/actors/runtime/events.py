"""The numbered events of one turn, for any number of readers.

The writer appends and never waits; each reader takes, at its own pace, everything since its last
batch. A reader that is slow gets fewer and larger batches; one that is so slow that the log has
had to forget what it has not read is told so.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import anyio


class Numbered(Protocol):
    @property
    def attempt(self) -> int: ...

    @property
    def seq(self) -> int:
        """Rises from event to event, over all attempts."""
        ...


E = TypeVar("E", bound=Numbered)

#: Takes two neighbours and returns the one event that says the same, or None.
Merge = Callable[[E, E], E | None]


class EventLog(Generic[E]):
    """Events in the order of their `seq`, kept in memory up to `limit` of them.

    `merge` lets neighbours be handed out as one, such as two pieces of text; the merged event
    carries the number of the later one. It is asked only when a reader has fallen behind.
    """

    def __init__(self, merge: Merge[E] | None = None, *, limit: int = 20_000) -> None:
        self._merge = merge
        self._limit = limit
        self._events: list[E] = []
        #: How many have been forgotten, which is also the position of the first that is kept.
        self._forgotten = 0
        #: The number of the last that was forgotten.
        self._forgotten_seq = 0
        self._last_seq = 0
        self._closed = False
        self._news: anyio.Event | None = None

    def append(self, event: E) -> None:
        """Add an event and wake who waits, once however many are added before it looks.

        Raises ValueError if its number is not higher than the last, or the log is closed.
        """
        if self._closed or event.seq <= self._last_seq:
            raise ValueError(f"event {event.seq} cannot follow {self._last_seq}")
        self._last_seq = event.seq
        self._events.append(event)
        if len(self._events) > self._limit:
            # In large steps, so that the cost of moving the rest is spread.
            surplus = max(1, self._limit // 4)
            self._forgotten_seq = self._events[surplus - 1].seq
            del self._events[:surplus]
            self._forgotten += surplus
        self._wake()

    def forget(self) -> None:
        """Forget all events; who has not read them yet has missed them."""
        self._forgotten_seq = self._last_seq
        self._forgotten += len(self._events)
        self._events = []

    def close(self) -> None:
        """No event follows. Readers get what is left, and then the end. Idempotent."""
        self._closed = True
        self._wake()

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def last_seq(self) -> int:
        """The number of the last event; 0 if there is none."""
        return self._last_seq

    @property
    def forgotten_seq(self) -> int:
        """The number of the last event that was forgotten; 0 if none was."""
        return self._forgotten_seq

    def reader(self, after: int = 0) -> EventReader[E]:
        """A reader of all events whose number is higher than `after`.

        If some of those are forgotten, its first batch says that it has missed something.
        """
        return EventReader(self, after)

    # For readers.

    def position(self, after: int) -> int:
        if after < self._forgotten_seq:
            return self._forgotten - 1
        return self._forgotten + bisect_right(self._events, after, key=_seq)

    def since(self, position: int) -> tuple[list[E], int]:
        """What is kept from a position on, and how many before it were forgotten unread."""
        missed = max(0, self._forgotten - position)
        return self._events[max(0, position - self._forgotten) :], missed

    async def wait(self) -> None:
        """Wait for an event or the end."""
        if self._news is None:
            self._news = anyio.Event()
        await self._news.wait()

    def merged(self, events: list[E]) -> tuple[E, ...]:
        if self._merge is None or len(events) < 2:
            return tuple(events)
        merged = [events[0]]
        for event in events[1:]:
            one = self._merge(merged[-1], event)
            if one is None:
                merged.append(event)
            else:
                merged[-1] = one
        return tuple(merged)

    def _wake(self) -> None:
        if self._news is not None:
            self._news.set()
            self._news = None


class EventReader(Generic[E]):
    """One reader's place in a log. For one task at a time."""

    def __init__(self, log: EventLog[E], after: int) -> None:
        self._log = log
        self._position = log.position(after)
        #: How many events before the last batch were forgotten unread: then show a snapshot first.
        self.missed = 0

    async def batch(self) -> tuple[E, ...]:
        """All events since the last batch, waiting for one if there is none; () at the end."""
        events, missed = self._log.since(self._position)
        while not events and not self._log.closed:
            await self._log.wait()
            events, missed = self._log.since(self._position)
        self.missed = missed
        self._position += missed + len(events)
        return self._log.merged(events)

    def __aiter__(self) -> EventReader[E]:
        return self

    async def __anext__(self) -> tuple[E, ...]:
        if batch := await self.batch():
            return batch
        raise StopAsyncIteration


def _seq(event: Numbered) -> int:
    return event.seq
