"""Vectors in Valkey: kept for others, and no harm when it is away or holds nonsense."""

from __future__ import annotations

from collections.abc import AsyncIterator

import numpy as np
import pytest

from mira.clock import SystemClock
from mira.ids import SystemIds
from mira.memory.embedding import Embedder
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


class Counting:
    """The real model, and how many texts it was given."""

    asymmetric = False

    def __init__(self, model: MiniLM) -> None:
        self._model = model
        self.model, self.dimension, self.weigh = model.model, model.dimension, model.weigh
        self.given = 0

    def encode(self, texts, kind):  # type: ignore[no-untyped-def]
        self.given += len(texts)
        return self._model.encode(texts, kind)


async def test_a_text_is_not_encoded_again_after_a_restart(
    minilm: MiniLM, pool: CpuPool, cache: Cache, text: str
) -> None:
    vectors = []
    models = [Counting(minilm) for _ in range(2)]
    for model in models:
        embedder = Embedder(
            lambda model=model: model, pool, SystemClock(), shared=VectorCopies(cache)
        )
        await embedder.warm()
        vectors.append(await embedder.texts([text, "x" + text]))
    assert np.array_equal(*vectors)
    assert [model.given for model in models] == [3, 1], "the second only warmed up"


async def test_copies_are_forgotten_in_time(
    minilm: MiniLM, pool: CpuPool, cache: Cache, text: str
) -> None:
    embedder = Embedder(lambda: minilm, pool, SystemClock(), shared=VectorCopies(cache))
    await embedder.warm()
    await embedder.texts([text])
    pattern = f"vector:{minilm.model}:text:*"
    keys = await cache.call(lambda client: client.keys(pattern), [], what="test")
    left = [await cache.call(lambda c, key=key: c.ttl(key), -1, what="test") for key in keys]
    assert left
    assert all(0 < seconds <= LIFETIME for seconds in left)


async def test_without_the_cache_nothing_is_lost_but_time(
    minilm: MiniLM, pool: CpuPool, text: str
) -> None:
    gone = Cache("unix:///nowhere/valkey.sock", SystemClock())
    embedder = Embedder(lambda: minilm, pool, SystemClock(), shared=VectorCopies(gone))
    await embedder.warm()
    assert np.array_equal(await embedder.texts([text]), minilm.encode([text], "text"))
    await gone.aclose()
