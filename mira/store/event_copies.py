"""Turn events in Valkey: one list for each turn, forgotten after an hour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import isawaitable
from uuid import UUID

import valkey.asyncio as valkey

from mira.store.cache import Cache

LIFETIME = 3600
#: Events kept of one turn.
LONGEST = 20_000


def _key(user_id: UUID, turn_id: UUID) -> str:
    return f"turn:{user_id}:{turn_id}"


async def append(cache: Cache, batch: Mapping[tuple[UUID, UUID], Sequence[bytes]]) -> None:
    """Append the encoded events of several turns (user, turn) in one round trip."""

    async def write(client: valkey.Valkey) -> bool:
        async with client.pipeline(transaction=False) as pipe:
            for (user_id, turn_id), events in batch.items():
                key = _key(user_id, turn_id)
                pipe.rpush(key, *events)
                pipe.ltrim(key, -LONGEST, -1)
                pipe.expire(key, LIFETIME)
            await pipe.execute()
        return True

    await cache.call(write, False, what="event_copies")


async def read(cache: Cache, user_id: UUID, turn_id: UUID) -> list[bytes]:
    """The encoded events of a turn, in order."""

    async def fetch(client: valkey.Valkey) -> list[bytes]:
        found = client.lrange(_key(user_id, turn_id), 0, -1)
        return list(await found) if isawaitable(found) else found

    return await cache.call(fetch, [], what="event_copies")
