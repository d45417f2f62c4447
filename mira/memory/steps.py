"""Runs changes of a user's memories: texts encoded first, then one transaction under the lock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar
from uuid import UUID

from mira.clock import Clock
from mira.errors import Conflict
from mira.ids import Ids
from mira.memory.encoding import Encoded, Encoders, encode, ready
from mira.memory.journal import Journal, Unencoded
from mira.store import memories, spaces
from mira.store.database import Database, Tx
from mira.store.memory_events import Actor
from mira.store.spaces import Spaces

T = TypeVar("T")

#: How often a step is begun anew because a text that it needs was not encoded yet.
_TRIES = 64


class Steps:
    """Begins and runs the steps of all users."""

    def __init__(self, database: Database, encoders: Encoders, clock: Clock, ids: Ids) -> None:
        self.database = database
        self.encoders = encoders
        self.clock = clock
        self.ids = ids

    async def encode(self, user_id: UUID, texts: Sequence[str]) -> Encoded:
        """Encode texts for the user's spaces, as far as there are encoders."""
        if not texts:
            return {}
        async with self.database.user(user_id) as tx:
            found = await spaces.find(tx, user_id)
        models = [space.model for space in found.all] if found else []
        current = ready(self.encoders)
        if current is not None:
            models.append(current.model)
        return await encode(self.encoders, models, texts)

    async def begin(
        self, tx: Tx, user_id: UUID, encoded: Encoded, *, actor: Actor, turn_id: UUID | None
    ) -> Journal:
        """Lock the user's memories and open a step in the caller's transaction."""
        await memories.lock(tx, user_id)
        return Journal(
            tx, user_id, await self.spaces(tx, user_id), encoded, actor=actor, turn_id=turn_id,
            ids=self.ids, now=self.clock.now(),
        )  # fmt: skip

    async def spaces(self, tx: Tx, user_id: UUID) -> Spaces | None:
        """The user's spaces, made if an encoder is there; None if there is neither."""
        found = await spaces.find(tx, user_id)
        current = ready(self.encoders)
        if found is not None or current is None:
            return found
        return await spaces.ensure(tx, user_id, current.model, current.dimension, self.clock.now())

    async def run(
        self, user_id: UUID, act: Callable[[Journal], Awaitable[T]], *, actor: Actor,
        turn_id: UUID | None, texts: Sequence[str] = (),
    ) -> T:  # fmt: skip
        """Run `act` as one step, its account with it.

        `texts` are encoded beforehand. What else `act` turns out to index is encoded outside of
        the transaction, and `act` is run once more from the beginning.
        """
        wanted = list(texts)
        for _ in range(_TRIES):
            encoded = await self.encode(user_id, wanted)
            try:
                async with self.database.user(user_id) as tx:
                    journal = await self.begin(tx, user_id, encoded, actor=actor, turn_id=turn_id)
                    result = await act(journal)
                    await journal.write()
                return result
            except Unencoded as missing:
                wanted.append(missing.text)
        raise Conflict("These memories change faster than this can be done.")
