"""The embedder: what turns texts into vectors for the whole house.

    caller ─ cache ─ batcher of its lane ─ pool ─ backend

Nothing here blocks the event loop: the model computes in the threads of the pool, batches are
small, and what the loop does itself (hashing, looking up) is cut into short pieces.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

import anyio
import numpy as np

from mira.clock import AlarmClock
from mira.errors import EmbedderUnavailable, MiraError
from mira.memory.embedding.base import Backend, Kind, SharedVectors, Vectors
from mira.memory.embedding.batching import LINGER, Batcher, Request
from mira.memory.embedding.remembered import Remembered
from mira.memory.pool import CpuPool
from mira.telemetry import logger

log = logger("embedding")

#: How much of one call is taken in at a time: texts, and characters (hashed in under a ms).
SLICE, SLICE_CHARACTERS = 128, 500_000
#: How many slices may be taken in at a time, over all callers; the others wait, in order.
LIVE_SLICES, BACKGROUND_SLICES = 64, 8


class Embedder:
    """One model, its cache and its queues. Used from one event loop.

    Before `warm` has succeeded everything raises EmbedderUnavailable, so that whoever searches
    can go on without vectors.
    """

    def __init__(
        self,
        load: Callable[[], Backend],
        pool: CpuPool,
        clock: AlarmClock,
        *,
        shared: SharedVectors | None = None,
    ) -> None:
        """`load` is called in a thread of `pool`, which stays its owner's to close."""
        self._load = load
        self._pool = pool
        self._clock = clock
        self._shared = shared
        self._warming = anyio.Lock()
        self._engine: _Engine | None = None
        self._why = "The embedding model is not loaded yet."
        self._closed = False

    @property
    def ready(self) -> bool:
        """Whether texts can be encoded now."""
        return self._engine is not None

    @property
    def model(self) -> str:
        """Name and weights of the model: vectors of another `model` belong to another space."""
        return self._now().backend.model

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        return self._now().backend.dimension

    async def warm(self) -> None:
        """Load the model; nothing if it is loaded. After a failure it may be called again.

        Raises EmbedderUnavailable, which says what is wrong and what helps.
        """
        async with self._warming:
            if self.ready or self._closed:
                return
            began = self._clock.monotonic()
            try:
                backend = await self._pool.run(partial(_loaded, self._load))
            except MiraError as error:
                self._why = error.detail
                log.warning("embedder_unavailable", reason=error.detail)
                raise
            if not self._closed:
                self._engine = _Engine(backend, self._pool, self._clock, self._shared)
                took = round(self._clock.monotonic() - began, 2)
                log.info("embedder_ready", model=backend.model, seconds=took)

    async def query(self, text: str) -> Vectors:
        """The vector [d] of something looked for. Goes before all texts."""
        vector: Vectors = (await self.queries((text,)))[0]
        return vector

    async def queries(self, texts: Sequence[str]) -> Vectors:
        """The vectors [n, d] of what is looked for, in order. They go before all texts."""
        return await self._vectors(texts, "query", live=True)

    async def texts(self, texts: Sequence[str], *, live: bool = False) -> Vectors:
        """The vectors [n, d] of what is to be found, in order.

        Any number of texts of any length (a model reads the beginning of a long one); taken in
        piece by piece, so that a long list neither fills the memory nor keeps others waiting.
        `live` where somebody waits for it.
        """
        return await self._vectors(texts, "text", live=live)

    async def aclose(self) -> None:
        """Take nothing more; what waits is answered with EmbedderUnavailable. Idempotent."""
        self._closed = True
        self._why = "The embedding model is put away: MIRA is stopping."
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close(self._why)

    def _now(self) -> _Engine:
        if self._engine is None:
            raise EmbedderUnavailable(self._why)
        return self._engine

    async def _vectors(self, texts: Sequence[str], kind: Kind, *, live: bool) -> Vectors:
        engine = self._now()
        parts = [await self._now().slice(part, kind, live=live) for part in _slices(texts)]
        if not parts:
            return np.empty((0, engine.backend.dimension), np.float32)
        return np.concatenate(parts) if len(parts) > 1 else parts[0]


class _Engine:
    """What there is once the model is loaded."""

    def __init__(
        self, backend: Backend, pool: CpuPool, clock: AlarmClock, shared: SharedVectors | None
    ) -> None:
        self.backend = backend
        self._pool = pool
        self._cache = Remembered(
            backend.model, backend.dimension, asymmetric=backend.asymmetric, shared=shared
        )
        self._lanes = {
            True: Batcher(
                partial(self._submit, live=True), backend.weigh, clock,
                at_once=pool.threads, linger=0.0,
            ),
            False: Batcher(
                partial(self._submit, live=False), backend.weigh, clock,
                at_once=pool.background, linger=LINGER,
            ),
        }  # fmt: skip
        self._room = {
            True: asyncio.Semaphore(LIVE_SLICES),
            False: asyncio.Semaphore(BACKGROUND_SLICES),
        }
        #: Texts that somebody waits for and that are under way: resolved when they are over.
        self._under_way: dict[str, asyncio.Future[None]] = {}
        self._closed = ""

    async def slice(self, texts: Sequence[str], kind: Kind, *, live: bool) -> Vectors:
        """The vectors of a few texts."""
        async with self._room[live]:
            clean = [text.encode("utf-8", "replace") for text in texts]
            keys = [self._cache.key(data, kind) for data in clean]
            found = {key: v for key in keys if (v := self._cache.here(key)) is not None}
            missing = {key: data for key, data in zip(keys, clean, strict=True) if key not in found}
            if missing and kind == "text":
                found |= await self._cache.elsewhere(list(missing))
                missing = {key: data for key, data in missing.items() if key not in found}
            if missing:
                make = self._made_once if live else self._made_now
                made = await make(missing, kind)
                found |= made
                if kind == "text":
                    await self._cache.share(made)
            else:
                await anyio.lowlevel.checkpoint()
        return np.stack([found[key] for key in keys])

    async def _made_once(self, missing: dict[str, bytes], kind: Kind) -> dict[str, Vectors]:
        """Live texts. What another caller has under way is waited for: memories and the history are
        searched for the same phrases at the same moment. If that comes to nothing, because the
        other has failed or left, it is made here."""
        found: dict[str, Vectors] = {}
        while missing:
            free = {key: data for key, data in missing.items() if key not in self._under_way}
            if free:
                over = asyncio.get_running_loop().create_future()
                self._under_way |= dict.fromkeys(free, over)
                try:
                    found |= await self._made_now(free, kind, live=True)
                finally:
                    for key in free:
                        del self._under_way[key]
                    over.set_result(None)
            else:
                await asyncio.wait({self._under_way[key] for key in missing})
            missing = {key: data for key, data in missing.items() if key not in found}
            found |= {key: v for key in missing if (v := self._cache.here(key)) is not None}
            missing = {key: data for key, data in missing.items() if key not in found}
        return found

    async def _made_now(
        self, missing: dict[str, bytes], kind: Kind, *, live: bool = False
    ) -> dict[str, Vectors]:
        """Vectors that the model makes, kept for whoever asks next."""
        made = await self._made(missing, kind, live=live)
        self._cache.keep(made)
        return made

    async def _made(
        self, missing: dict[str, bytes], kind: Kind, *, live: bool
    ) -> dict[str, Vectors]:
        if self._closed:
            raise EmbedderUnavailable(self._closed)
        request = Request([data.decode() for data in missing.values()], kind)
        lane = self._lanes[live]
        lane.add(request)
        try:
            vectors = await request.vectors
        except EmbedderUnavailable:
            raise
        except MiraError as error:
            raise EmbedderUnavailable(error.detail) from error
        except Exception as error:  # a library's own words: nothing a caller could act on
            log.exception("encoding_failed", texts=len(missing))
            raise EmbedderUnavailable("The embedding model failed on a text.") from error
        finally:
            lane.forget(request)
        return {key: vector.copy() for key, vector in zip(missing, vectors, strict=True)}

    def close(self, why: str) -> None:
        self._closed = why
        for lane in self._lanes.values():
            lane.close(EmbedderUnavailable(why))

    def _submit(self, texts: Sequence[str], kind: Kind, *, live: bool) -> asyncio.Future[Vectors]:
        return self._pool.submit(partial(self.backend.encode, texts, kind), live=live)


def _loaded(load: Callable[[], Backend]) -> Backend:
    """In a thread: load the model and use it once, since a first use costs more than others."""
    backend = load()
    backend.encode(["warm"], "query")
    return backend


def _slices(texts: Sequence[str]) -> list[Sequence[str]]:
    """Cut a list so that each part is small in number and in length, but for single long texts."""
    parts: list[Sequence[str]] = []
    start = characters = 0
    for index, text in enumerate(texts):
        if index > start and (index - start == SLICE or characters + len(text) > SLICE_CHARACTERS):
            parts.append(texts[start:index])
            start, characters = index, 0
        characters += len(text)
    if start < len(texts):
        parts.append(texts[start:])
    return parts
