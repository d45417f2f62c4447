"""The search over memories: lanes, one ranking, what is linked to the best, and the trace of it.

Memories that everybody shares are read as their own user, in a transaction of its own, and ranked
together with the user's. What is archived is never found.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import anyio
import msgspec

from mira.clock import Clock
from mira.errors import MiraError, Unavailable, ValidationFailed
from mira.ids import Ids
from mira.memory import candidates, lanes, linking
from mira.memory.candidates import Found, Ranked
from mira.memory.encoding import Encoders, ready
from mira.memory.model import LinkedMemory, Memory
from mira.memory.query import RecallQuery
from mira.memory.ranking import Blend
from mira.store import memory_search, search_opening, signatures, traces, vectors
from mira.store.database import Database, Tx
from mira.store.memory_search import SHARED
from mira.store.search_opening import OfMemories
from mira.store.signatures import Signs
from mira.store.spaces import Source
from mira.store.traces import Trace

#: How many linked memories each hit brings.
LINKED = 2


class MemoryHit(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that was found."""

    memory: Memory
    #: What it is ranked by, and what that is made of.
    score: float
    relevance: float
    importance: float
    #: What each lane that found it said: rank (from 1) and score.
    lanes: dict[str, tuple[int, float]]
    #: Whether it is one that everybody shares; those are read-only.
    shared: bool = False
    #: What belongs to it; of a superseded one first what stands in its place.
    linked: tuple[LinkedMemory, ...] = ()


class MemoryRanking(msgspec.Struct, frozen=True, kw_only=True):
    """What a search found, best first."""

    hits: tuple[MemoryHit, ...]
    #: How the dense lane went: exact, by signs first (signs), or why it was left out.
    dense: str
    trace_id: UUID | None = None


class _Phrases:
    """The phrases of a search, encoded once for each model that is asked for."""

    def __init__(self, encoders: Encoders, said: Sequence[str]) -> None:
        self.said = said
        self._encoders = encoders
        self._vectors: dict[str, list[Sequence[float]] | None] = {}

    def of(self, model: str) -> list[Sequence[float]] | None:
        """None if there is no encoder for the model, or nothing to encode."""
        return self._vectors.get(model)

    async def encode(self, model: str | None) -> None:
        """Encode for a model, or for the current one if it is loaded."""
        encoder = ready(self._encoders) if model is None else self._encoders.of(model)
        model = encoder.model if encoder is not None and model is None else model
        if model is None or model in self._vectors:
            return
        self._vectors[model] = None
        if encoder is not None and self.said:
            # Words alone find most things; better than nothing.
            with suppress(Unavailable):
                encoded = await encoder.queries(self.said)
                self._vectors[model] = [vector.tolist() for vector in encoded]


class _Begun(NamedTuple):
    """What a search has read of one user before it has vectors."""

    opening: OfMemories
    without: set[int]
    only: set[int] | None
    lanes: dict[str, lanes.Lane]
    #: Of a large store, and only if it is to be compared by them.
    signs: Signs | None


class _Asked(NamedTuple):
    """One search, as all of its steps need it."""

    query: RecallQuery
    phrases: _Phrases
    now: datetime
    #: How many linked memories each hit brings.
    linked: int


class MemorySearch:
    """Searches memories of any user. Safe to use from many tasks at once."""

    def __init__(
        self, database: Database, encoders: Encoders, clock: Clock, ids: Ids,
        blend: Blend | None = None,
    ) -> None:  # fmt: skip
        self._database = database
        self._encoders = encoders
        self._clock = clock
        self._ids = ids
        self._blend = blend or Blend()

    async def search(
        self, user_id: UUID, query: RecallQuery, *, limit: int | None = None,
        turn_id: UUID | None = None, purpose: str = "search", traced: bool = True,
        linked: int = LINKED,
    ) -> MemoryRanking:  # fmt: skip
        """At most `limit` memories (default: the query's), best first, with at most `linked`
        others each. Raises ValidationFailed if nothing is asked."""
        phrases = _phrases(query)
        if limit is not None:
            query = msgspec.structs.replace(query, limit=limit)
        asked = _Asked(query, _Phrases(self._encoders, phrases), self._clock.now(), linked)
        own, shared = await self._begun(user_id, asked)
        everything = []
        if shared is not None:
            async with self._database.user(SHARED, planned_once=True) as tx:
                everything = [await _end(tx, SHARED, asked, shared)]
        trace = None
        async with self._database.user(user_id, planned_once=True) as tx:
            everything.insert(0, await _end(tx, user_id, asked, own))
            order = candidates.ranked(everything, query, self._blend)
            best = order[: query.limit]
            if traced:
                trace = Trace(
                    id=self._ids.new(), turn_id=turn_id, purpose=purpose, at=asked.now,
                    query=candidates.asked(query, phrases, everything),
                    results=candidates.results(order, query.limit),
                )  # fmt: skip
                await traces.write(tx, user_id, trace)
            read = await _read(tx, user_id, asked, best)
        if any(one.owner != user_id for one in best):
            async with self._database.user(SHARED, planned_once=True) as tx:
                read |= await _read(tx, SHARED, asked, best)
        return MemoryRanking(
            hits=tuple(
                MemoryHit(
                    memory=read[one.candidate.id][0], score=one.score, relevance=one.relevance,
                    importance=one.candidate.score, lanes=one.lanes,
                    shared=one.owner != user_id, linked=read[one.candidate.id][1],
                )
                for one in best
                if one.candidate.id in read
            ),
            dense=everything[0].dense, trace_id=None if trace is None else trace.id,
        )  # fmt: skip

    async def _begun(self, user_id: UUID, asked: _Asked) -> tuple[_Begun, _Begun | None]:
        """What there is before the vectors, of the user and of what everybody shares.

        While the phrases are encoded (by the current model; by another only if vectors are still
        of that one), what needs no vector is read; no transaction waits for a model."""
        failed: MiraError | None = None
        shared: _Begun | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(asked.phrases.encode, None)
            try:
                async with self._database.user(user_id, planned_once=True) as tx:
                    own = await _begin(tx, user_id, asked)
                if user_id != SHARED and await memory_search.any_active(
                    self._database.step, SHARED
                ):
                    async with self._database.user(SHARED, planned_once=True) as tx:
                        shared = await _begin(tx, SHARED, asked)
            except MiraError as error:
                failed = error
        if failed is not None:
            raise failed
        for one in (own, shared):
            if one is not None and one.opening.spaces is not None:
                await asked.phrases.encode(one.opening.spaces.active.model)
        return own, shared


async def _begin(tx: Tx, owner: UUID, asked: _Asked) -> _Begun:
    query, said = asked.query, asked.phrases.said
    opening = await search_opening.of_memories(tx, owner, list(query.exclude))
    whole, without = opening.corpus, set(opening.without)
    only = None
    if query.as_of is not None:
        only = set(await memory_search.true_at(tx, owner, query.as_of))
    found: dict[str, lanes.Lane] = {}
    found["lexical"] = await lanes.lexical(
        tx, owner, whole, said, without, only, most=lanes.depth(query.limit)
    )
    found["entity"] = await lanes.entity(tx, owner, whole, query.entities, said, without, only)
    signs = None
    if opening.spaces is not None and only is None and vectors.method(whole.documents) == "signs":
        signs = await signatures.read(tx, owner, Source.MEMORIES, opening.spaces.active)
    return _Begun(opening, without, only, found, signs)


async def _end(tx: Tx, owner: UUID, asked: _Asked, begun: _Begun) -> Found:
    opening, without, only, said, signs = begun
    found: dict[str, lanes.Lane] = {}
    dense = "no vectors yet"
    if opening.spaces is not None:
        space, whole = opening.spaces.active, opening.corpus
        encoded = asked.phrases.of(space.model)
        dense = "no encoder" if encoded is None else vectors.method(whole.documents)
        if encoded is not None:
            found["dense"] = await lanes.dense(
                tx, owner, whole, space, encoded, without, only,
                most=lanes.depth(asked.query.limit), signs=signs,
            )  # fmt: skip
    found |= said
    docs = list(dict.fromkeys(doc for lane in found.values() for doc in lane))
    return Found(
        owner=owner, lanes=found, dense=dense, use_day=opening.use_days,
        candidates=await memory_search.candidates(tx, owner, docs, asked.now, opening.use_days),
    )  # fmt: skip


_Read = dict[UUID, tuple[Memory, tuple[LinkedMemory, ...]]]


async def _read(tx: Tx, owner: UUID, asked: _Asked, best: Sequence[Ranked]) -> _Read:
    """Those of the best that are this user's, each with what belongs to it."""
    hits = {one.candidate.id: one.candidate.superseded for one in best if one.owner == owner}
    if not hits:
        return {}
    rows, along = await linking.belonging(
        tx, owner, hits, limit=asked.linked, without=asked.query.exclude, as_of=asked.query.as_of
    )
    return {one: (rows[one], tuple(along[one])) for one in rows}


def _phrases(query: RecallQuery) -> list[str]:
    kept = query.kept_phrases()
    if not kept and not any(name.strip() for name in query.entities):
        raise ValidationFailed("Nothing is looked for.", (("q", "empty"),))
    return kept
