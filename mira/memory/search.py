"""The search over memories: lanes, one ranking, what is linked to the best, and the trace of it.

Memories that everybody shares are read as their own user, in a transaction of its own, and ranked
together with the user's. What is archived is never found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
import numpy as np

from mira.clock import Clock
from mira.errors import Unavailable, ValidationFailed
from mira.ids import Ids
from mira.memory import lanes, linking
from mira.memory.encoding import Encoders, ready
from mira.memory.model import LinkedMemory, Memory
from mira.memory.query import RecallQuery
from mira.memory.ranking import Blend, Ranked, Standing, rank
from mira.memory.terms import clean
from mira.store import memories, memory_search, postings, spaces, traces, vectors
from mira.store.database import Database, Tx
from mira.store.memory_search import SHARED, Candidate
from mira.store.spaces import Source, Spaces
from mira.store.traces import Trace

#: How long a phrase may be, and how many there may be.
LONGEST_PHRASE, MOST_PHRASES = 2000, 8
#: How many linked memories each hit brings, and from how many links away at most.
LINKED, LINK_DEPTH = 2, 3
#: How many candidates a trace holds.
TRACED = 60
LANES = ("dense", "lexical", "entity")


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


class _Found(msgspec.Struct, kw_only=True):
    """What one user's memories gave."""

    owner: UUID
    lanes: dict[str, lanes.Lane]
    candidates: dict[int, Candidate]
    use_day: int
    dense: str


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
        keys, ranked, matrix = self._rank(everything, query)
        best = ranked.order[: query.limit]
        trace = None
        if traced:
            trace = Trace(
                id=self._ids.new(), turn_id=turn_id, purpose=purpose, at=now,
                query=_asked(query, phrases, everything),
                results=_results(everything, keys, ranked, matrix, query.limit),
            )  # fmt: skip
        hits = await self._hits(
            user_id, query, everything, keys, ranked, matrix, best, linked, trace
        )
        return MemoryRanking(
            hits=tuple(hits), dense=own.dense, trace_id=None if trace is None else trace.id
        )

    async def _of(
        self, owner: UUID, query: RecallQuery, phrases: _Phrases, now: datetime
    ) -> _Found:
        """What one user's memories give. The phrases are encoded before the transaction, by the
        current model; by another only if the user's vectors are still of that one."""
        await phrases.encode(None)
        while True:
            async with self._database.user(owner) as tx:
                known = await spaces.find(tx, owner)
                if known is None or phrases.tried(known.active.model):
                    return await self._lanes(tx, owner, query, phrases, known, now)
            await phrases.encode(known.active.model)

    async def _lanes(
        self, tx: Tx, owner: UUID, query: RecallQuery, phrases: _Phrases, known: Spaces | None,
        now: datetime,
    ) -> _Found:  # fmt: skip
        without = set(await memory_search.docs_of(tx, owner, list(query.exclude)))
        only = None
        if query.as_of is not None:
            only = set(await memory_search.true_at(tx, owner, query.as_of))
        whole = await postings.corpus(tx, owner, Source.MEMORIES)
        said, most = phrases.said, lanes.depth(query.limit)
        found: dict[str, lanes.Lane] = {}
        dense = "no vectors yet"
        if known is not None:
            encoded = phrases.of(known.active.model)
            dense = "no encoder" if encoded is None else vectors.method(whole.documents)
            if encoded is not None:
                found["dense"] = await lanes.dense(
                    tx, owner, whole, known.active, encoded, without, only, most=most
                )
        found["lexical"] = await lanes.lexical(tx, owner, whole, said, without, only, most=most)
        found["entity"] = await lanes.entity(tx, owner, whole, query.entities, said, without, only)
        docs = list(dict.fromkeys(doc for lane in found.values() for doc in lane))
        return _Found(
            owner=owner, lanes=found, dense=dense,
            candidates=await memory_search.candidates(tx, owner, docs, now),
            use_day=await memories.use_days(tx, owner),
        )  # fmt: skip

    async def _of_all(self, query: RecallQuery, phrases: _Phrases, now: datetime) -> _Found | None:
        async with self._database.user(SHARED) as tx:
            there = await memory_search.any_active(tx, SHARED)
        return await self._of(SHARED, query, phrases, now) if there else None

    def _rank(
        self, everything: Sequence[_Found], query: RecallQuery
    ) -> tuple[list[tuple[int, int]], Ranked, dict[str, np.ndarray[Any, np.dtype[np.float64]]]]:
        """All candidates as (whose, document), their ranking, and what the lanes said of each."""
        keys = [(at, doc) for at, one in enumerate(everything) for doc in one.candidates]
        matrix = {
            name: np.array(
                [everything[at].lanes.get(name, {}).get(doc, np.nan) for at, doc in keys], float
            )
            for name in LANES
        }
        rows = [everything[at].candidates[doc] for at, doc in keys]
        ages = [
            everything[at].use_day - row.use_day_created
            for (at, _), row in zip(keys, rows, strict=True)
        ]
        past = query.as_of is not None
        standing = Standing(
            importance=np.array([row.score for row in rows], float),
            age=np.array(ages, float),
            superseded=np.array([row.superseded and not past for row in rows], float),
        )
        return keys, rank(matrix, standing, query.intent, self._blend), matrix

    async def _hits(
        self, user_id: UUID, query: RecallQuery, everything: Sequence[_Found],
        keys: Sequence[tuple[int, int]], ranked: Ranked,
        matrix: Mapping[str, np.ndarray[Any, np.dtype[np.float64]]], best: Sequence[int],
        linked: int, trace: Trace | None,
    ) -> list[MemoryHit]:  # fmt: skip
        """The best, read with what belongs to them; the trace is written on the way."""
        rows: dict[UUID, Memory] = {}
        along: dict[UUID, list[LinkedMemory]] = {}
        for at, one in enumerate(everything):
            ids = [one.candidates[keys[n][1]].id for n in best if keys[n][0] == at]
            mine = trace if one.owner == user_id else None
            if not ids and mine is None:
                continue
            async with self._database.user(one.owner) as tx:
                if mine is not None:
                    await traces.write(tx, user_id, mine)
                rows |= await memories.find(tx, one.owner, ids)
                if linked and ids:
                    along |= await linking.belonging(
                        tx, one.owner, [rows[i] for i in ids if i in rows], limit=linked,
                        without=query.exclude, as_of=query.as_of,
                    )  # fmt: skip
        hits = []
        for n in best:
            at, doc = keys[n]
            candidate = everything[at].candidates[doc]
            if candidate.id not in rows:
                continue
            hits.append(
                MemoryHit(
                    memory=rows[candidate.id], score=float(ranked.score[n]),
                    relevance=float(ranked.relevance[n]), importance=candidate.score,
                    lanes=_said(matrix, n), shared=everything[at].owner != user_id,
                    linked=tuple(along.get(candidate.id, ())),
                )
            )  # fmt: skip
        return hits


def _phrases(query: RecallQuery) -> list[str]:
    phrases = [clean(p).strip()[:LONGEST_PHRASE] for p in query.phrases]
    kept = list(dict.fromkeys(p for p in phrases if p))[:MOST_PHRASES]
    if not kept and not any(name.strip() for name in query.entities):
        raise ValidationFailed("Nothing is looked for.", (("q", "empty"),))
    return kept


def _said(
    matrix: Mapping[str, np.ndarray[Any, np.dtype[np.float64]]], at: int
) -> dict[str, tuple[int, float]]:
    return {
        name: (int((lane > lane[at]).sum()) + 1, float(lane[at]))
        for name, lane in matrix.items()
        if np.isfinite(lane[at])
    }


def _asked(
    query: RecallQuery, phrases: Sequence[str], everything: Sequence[_Found]
) -> dict[str, Any]:
    return {
        "phrases": list(phrases), "entities": list(query.entities), "intent": query.intent,
        "limit": query.limit, "as_of": query.as_of, "excluded": len(query.exclude),
        "dense": everything[0].dense, "shared": len(everything) > 1,
        "found": {name: sum(len(o.lanes.get(name, {})) for o in everything) for name in LANES},
    }  # fmt: skip


def _results(
    everything: Sequence[_Found], keys: Sequence[tuple[int, int]], ranked: Ranked,
    matrix: Mapping[str, np.ndarray[Any, np.dtype[np.float64]]], kept: int,
) -> list[dict[str, Any]]:  # fmt: skip
    rows = []
    for place, n in enumerate(ranked.order[:TRACED]):
        at, doc = keys[n]
        candidate = everything[at].candidates[doc]
        rows.append(
            {
                "id": candidate.id, "score": round(float(ranked.score[n]), 4),
                "relevance": round(float(ranked.relevance[n]), 4),
                "importance": round(candidate.score, 4), "superseded": candidate.superseded,
                "shared": everything[at].owner == SHARED,
                "lanes": {k: [r, round(s, 4)] for k, (r, s) in _said(matrix, n).items()},
                "kept": place < kept, "why": "" if place < kept else "ranked too low",
            }
        )  # fmt: skip
    return rows
