"""The last render of each section of a user's prompt, in Valkey: to look at, never to rely on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from inspect import isawaitable
from uuid import UUID

import msgspec
import valkey.asyncio as valkey

from mira.store.cache import Cache

LIFETIME = 14 * 24 * 3600


class Render(msgspec.Struct, frozen=True, kw_only=True):
    """One section as it was last sent to a model. Where it failed, `error` says how."""

    name: str
    placement: str
    text: str
    tokens: int
    turn_id: UUID
    at: datetime
    error: str | None = None


def _key(user_id: UUID) -> str:
    return f"working:{user_id}"


async def write(cache: Cache, user_id: UUID, renders: Sequence[Render]) -> None:
    """Let these take the place of all that stood there. Lost when the cache is away."""
    key = _key(user_id)

    async def keep(client: valkey.Valkey) -> bool:
        async with client.pipeline(transaction=True) as pipe:
            pipe.delete(key)
            if renders:
                pipe.rpush(key, *(msgspec.json.encode(one) for one in renders))
                pipe.expire(key, LIFETIME)
            await pipe.execute()
        return True

    await cache.call(keep, False, what="renders")


async def read(cache: Cache, user_id: UUID) -> list[Render]:
    """In the order of the prompt; empty when there are none, or the cache is away."""

    async def fetch(client: valkey.Valkey) -> list[bytes]:
        found = client.lrange(_key(user_id), 0, -1)
        return list(await found) if isawaitable(found) else found

    nothing: list[bytes] = []
    raw = await cache.call(fetch, nothing, what="renders")
    return [msgspec.json.decode(one, type=Render) for one in raw]
