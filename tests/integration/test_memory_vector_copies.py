"""Vectors in Valkey: kept for others, and no harm when it is away or holds nonsense."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import numpy as np
import pytest
import valkey.asyncio as valkey

from mira.clock import SystemClock
from mira.ids import SystemIds
from mira.memory.embedding import Backend, Embedder, Kind, Vectors
from mira.memory.embedding.minilm import MiniLM
from mira.memory.pool import CpuPool
from mira.store.cache import Cache
from mira.store.vector_copies import LIFETIME, VectorCopies
from tests.services import TestServices

pytestmark = pytest.mark.anyio


@pytest.fixture
async def cache(services: TestServices) -> AsyncIterator[Cache]:
    opened = Cache(services.valkey.url, SystemClock())
    yield opened
    await opened.aclose()


@pytest.fixture
def text() -> str:
    """A text that nobody has embedded before."""
    return f"note {SystemIds().new()}"


async def _ready(model: Backend, pool: CpuPool, cache: Cache) -> Embedder:
    """An embedder as after a start."""
    embedder = Embedder(lambda: model, pool, SystemClock(), shared=VectorCopies(cache))
    await embedder.warm()
    return embedder


class Counting:
    """The real model, and how many texts it was given."""

    asymmetric = False

    def __init__(self, model: MiniLM) -> None:
        self._model = model
        self.model, self.dimension, self.weigh = model.model, model.dimension, model.weigh
        self.given = 0

    def encode(self, texts: Sequence[str], kind: Kind) -> Vectors:
        self.given += len(texts)
        return self._model.encode(texts, kind)


async def test_a_text_is_not_encoded_again_after_a_restart(
    minilm: MiniLM, pool: CpuPool, cache: Cache, text: str
) -> None:
    models = [Counting(minilm) for _ in range(2)]
    first, second = [
        await (await _ready(model, pool, cache)).texts([text, "x" + text]) for model in models
    ]
    assert np.array_equal(first, second)
    assert [model.given for model in models] == [3, 1], "the second only warmed up"


async def test_copies_are_forgotten_in_time(
    minilm: MiniLM, pool: CpuPool, cache: Cache, text: str
) -> None:
    embedder = await _ready(minilm, pool, cache)
    await embedder.texts([text])

    async def lifetimes(client: valkey.Valkey) -> list[int]:
        keys = await client.keys(f"vector:{minilm.model}:text:*")
        return [await client.ttl(key) for key in keys]

    left: list[int] = await cache.call(lifetimes, [], what="test")
    assert left
    assert all(0 < seconds <= LIFETIME for seconds in left)


async def test_without_the_cache_nothing_is_lost_but_time(
    minilm: MiniLM, pool: CpuPool, text: str
) -> None:
    gone = Cache("unix:///nowhere/valkey.sock", SystemClock())
    embedder = await _ready(minilm, pool, gone)
    assert np.array_equal(await embedder.texts([text]), minilm.encode([text], "text"))
    await gone.aclose()
