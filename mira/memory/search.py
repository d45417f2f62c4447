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
from mira.store import memories, memory_search, postings, spaces, traces, vectors
from mira.store.database import Database, Tx
from mira.store.memory_search import SHARED
from mira.store.postings import Corpus
from mira.store.spaces import Source, Spaces
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

    def tried(self, model: str) -> bool:
        return model in self._vectors

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
    """What a search has read before it has vectors."""

    known: Spaces | None
    whole: Corpus
    without: set[int]
    only: set[int] | None
    lanes: dict[str, lanes.Lane]


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
        now = self._clock.now()
        if limit is not None:
            query = msgspec.structs.replace(query, limit=limit)
        asked = _Phrases(self._encoders, phrases)
        own = await self._of(user_id, query, asked, now)
        shared = None if user_id == SHARED else await self._of_all(query, asked, now)
        everything = [own] if shared is None else [own, shared]
        order = candidates.ranked(everything, query, self._blend)
        trace = None
        if traced:
            trace = Trace(
                id=self._ids.new(), turn_id=turn_id, purpose=purpose, at=now,
                query=candidates.asked(query, phrases, everything),
                results=candidates.results(order, query.limit),
            )  # fmt: skip
        hits = await self._hits(user_id, query, order[: query.limit], linked, trace)
        return MemoryRanking(
            hits=tuple(hits), dense=own.dense, trace_id=None if trace is None else trace.id
        )

    async def _of(self, owner: UUID, query: RecallQuery, phrases: _Phrases, now: datetime) -> Found:
        """What one user's memories give. While the phrases are encoded (by the current model; by
        another only if the user's vectors are still of that one), the lanes that need no vector are
        read; no transaction waits for a model."""
        failed: MiraError | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(phrases.encode, None)
            try:
                async with self._database.user(owner) as tx:
                    begun = await self._begin(tx, owner, query, phrases)
            except MiraError as error:
                failed = error
        if failed is not None:
            raise failed
        if begun.known is not None and not phrases.tried(begun.known.active.model):
            await phrases.encode(begun.known.active.model)
        async with self._database.user(owner) as tx:
            return await self._end(tx, owner, query, phrases, begun, now)

    async def _begin(self, tx: Tx, owner: UUID, query: RecallQuery, phrases: _Phrases) -> _Begun:
        known = await spaces.find(tx, owner)
        without = set(await memory_search.docs_of(tx, owner, list(query.exclude)))
        only = None
        if query.as_of is not None:
            only = set(await memory_search.true_at(tx, owner, query.as_of))
        whole = await postings.corpus(tx, owner, Source.MEMORIES)
        said, most = phrases.said, lanes.depth(query.limit)
        found: dict[str, lanes.Lane] = {}
        found["lexical"] = await lanes.lexical(tx, owner, whole, said, without, only, most=most)
        found["entity"] = await lanes.entity(tx, owner, whole, query.entities, said, without, only)
        return _Begun(known, whole, without, only, found)

    async def _end(
        self, tx: Tx, owner: UUID, query: RecallQuery, phrases: _Phrases, begun: _Begun,
        now: datetime,
    ) -> Found:  # fmt: skip
        known, whole, without, only, said = begun
        most = lanes.depth(query.limit)
        found: dict[str, lanes.Lane] = {}
        dense = "no vectors yet"
        if known is not None:
            encoded = phrases.of(known.active.model)
            dense = "no encoder" if encoded is None else vectors.method(whole.documents)
            if encoded is not None:
                found["dense"] = await lanes.dense(
                    tx, owner, whole, known.active, encoded, without, only, most=most
                )
        found |= said
        docs = list(dict.fromkeys(doc for lane in found.values() for doc in lane))
        return Found(
            owner=owner, lanes=found, dense=dense,
            candidates=await memory_search.candidates(tx, owner, docs, now),
            use_day=await memories.use_days(tx, owner),
        )  # fmt: skip

    async def _of_all(self, query: RecallQuery, phrases: _Phrases, now: datetime) -> Found | None:
        async with self._database.user(SHARED) as tx:
            there = await memory_search.any_active(tx, SHARED)
        return await self._of(SHARED, query, phrases, now) if there else None

    async def _hits(
        self, user_id: UUID, query: RecallQuery, best: Sequence[Ranked], linked: int,
        trace: Trace | None,
    ) -> list[MemoryHit]:  # fmt: skip
        """The best, read with what belongs to them; the trace is written on the way."""
        rows: dict[UUID, Memory] = {}
        along: dict[UUID, list[LinkedMemory]] = {}
        for owner in dict.fromkeys([user_id, *(one.owner for one in best)]):
            ids = [one.candidate.id for one in best if one.owner == owner]
            written = trace if owner == user_id else None
            if not ids and written is None:
                continue
            async with self._database.user(owner) as tx:
                if written is not None:
                    await traces.write(tx, user_id, written)
                rows |= await memories.find(tx, owner, ids)
                if linked and ids:
                    along |= await linking.belonging(
                        tx, owner, [rows[one] for one in ids if one in rows], limit=linked,
                        without=query.exclude, as_of=query.as_of,
                    )  # fmt: skip
        return [
            MemoryHit(
                memory=rows[one.candidate.id], score=one.score, relevance=one.relevance,
                importance=one.candidate.score, lanes=one.lanes, shared=one.owner != user_id,
                linked=tuple(along.get(one.candidate.id, ())),
            )
            for one in best
            if one.candidate.id in rows
        ]  # fmt: skip


def _phrases(query: RecallQuery) -> list[str]:
    kept = query.kept_phrases()
    if not kept and not any(name.strip() for name in query.entities):
        raise ValidationFailed("Nothing is looked for.", (("q", "empty"),))
    return kept
