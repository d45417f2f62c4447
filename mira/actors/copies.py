"""Copies of turn events in Valkey, written in batches, for followers whose feed is gone."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from uuid import UUID

import anyio

from mira.actors.voice import SPAN
from mira.clock import Clock
from mira.messages.stream import CLOSING, AnyTurnEvent
from mira.messages.wire import decode_event, encode
from mira.store import event_copies
from mira.store.cache import Cache

#: Seconds between batches.
EVERY = 0.1
#: Events that wait for a batch at most; older ones are dropped first (a copy is only a cache).
WAITING = 50_000


def whole_attempt(copied: Sequence[AnyTurnEvent], attempt: int) -> Sequence[AnyTurnEvent]:
    """The events of a turn's last attempt if every one of them was copied, once; else nothing.

    What was copied while the cache was away is missing, and what was sent twice may be doubled.
    """
    own = [event for event in copied if event.attempt == attempt]
    first = (attempt - 1) * SPAN + 1
    numbers = list(range(first, first + len(own)))
    if own and isinstance(own[-1], CLOSING) and [event.seq for event in own] == numbers:
        return own
    return ()


class EventCopies:
    """Collects events and writes them behind the turns' back."""

    def __init__(self, cache: Cache, clock: Clock) -> None:
        self._cache = cache
        self._clock = clock
        self._waiting: deque[tuple[UUID, AnyTurnEvent]] = deque(maxlen=WAITING)
        self._news = anyio.Event()

    def add(self, user_id: UUID, event: AnyTurnEvent) -> None:
        """Copy at leisure."""
        self._waiting.append((user_id, event))
        if not self._news.is_set():
            self._news.set()

    async def run(self) -> None:
        """Write batches until cancelled."""
        while True:
            await self._news.wait()
            await self._clock.sleep(EVERY)
            await self.flush()

    async def flush(self) -> None:
        """Write what waits now."""
        self._news = anyio.Event()
        batch, self._waiting = self._waiting, deque(maxlen=WAITING)
        if self._cache.away:
            return
        by_turn: dict[tuple[UUID, UUID], list[bytes]] = {}
        for user_id, event in batch:
            by_turn.setdefault((user_id, event.turn_id), []).append(encode(event))
        if by_turn:
            await event_copies.append(self._cache, by_turn)

    async def read(self, user_id: UUID, turn_id: UUID) -> Sequence[AnyTurnEvent]:
        """All copied events of a turn, in order; none if the cache is away or has forgotten."""
        return [decode_event(raw) for raw in await event_copies.read(self._cache, user_id, turn_id)]
