"""Vectors in Valkey, so that a text is not encoded again after a restart, or by another process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import valkey.asyncio as valkey

from mira.store.cache import Cache

#: How long a vector is kept, in seconds: two weeks. The cache may let go of it sooner.
LIFETIME = 14 * 24 * 3600


class VectorCopies:
    """The port that the embedder asks. Nothing here raises because the cache is away."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    async def get(self, keys: Sequence[str]) -> Sequence[bytes | None]:
        """What is kept under each key, in order; one round trip."""

        async def fetch(client: valkey.Valkey) -> Sequence[bytes | None]:
            found: Sequence[bytes | None] = await client.mget(list(keys))
            return found

        return await self._cache.call(fetch, [None] * len(keys), what="vectors")

    async def put(self, entries: Mapping[str, bytes]) -> None:
        """Keep them; one round trip."""

        async def write(client: valkey.Valkey) -> bool:
            async with client.pipeline(transaction=False) as pipe:
                for key, data in entries.items():
                    pipe.set(key, data, ex=LIFETIME)
                await pipe.execute()
            return True

        await self._cache.call(write, False, what="vectors")
