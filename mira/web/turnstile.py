"""Work that takes much of the machine: little of it at once, and of each user one piece."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID
from weakref import WeakValueDictionary

import anyio


class Turnstile:
    """Lets `most` pieces of work run at once, and of one user never two: who has much to do cannot
    keep the others out. Whoever waits is served in order."""

    def __init__(self, most: int) -> None:
        self._all = anyio.Semaphore(most)
        #: Of users who wait or work; it goes with the last of them.
        self._own: WeakValueDictionary[UUID, anyio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def of(self, user_id: UUID) -> AsyncIterator[None]:
        """Wait for a place, and hold it for the block."""
        own = self._own.get(user_id)
        if own is None:
            self._own[user_id] = own = anyio.Lock()
        async with own, self._all:
            yield

    def __len__(self) -> int:
        """How many users wait or work."""
        return len(self._own)
