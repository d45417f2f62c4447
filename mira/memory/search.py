"""The search over memories: lanes, one ranking, what is linked to the best, and the trace of it.

Memories that everybody shares are read as their own user, in a transaction of its own, and ranked
together with the user's. What is archived is never found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
import numpy as np

from mira.clock import Clock
from mira.errors import Unavailable, ValidationFailed
from mira.ids import Ids
from mira.memory import lanes, linking
from mira.memory.encoding import Encoders
from mira.memory.model import LinkedMemory, Memory
from mira.memory.query import RecallQuery
from mira.memory.ranking import Blend, Ranked, Standing, rank
from mira.memory.terms import clean
from mira.store import memories, memory_search, spaces, traces
from mira.store.database import Database, Tx
from mira.store.memory_search import SHARED, Candidate
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
    #: How the dense lane went: exact, or why it was left out.
    dense: str
    trace_id: UUID | None = None


class _Found(msgspec.Struct, kw_only=True):
    """What one user's memories gave."""

    owner: UUID
    lanes: dict[str, lanes.Lane]
    candidates: dict[int, Candidate]
    use_day: int
    dense: str


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
        most = query.limit if limit is None else limit
        vectors: dict[str, list[Sequence[float]] | None] = {}
        own = await self._of(user_id, query, phrases, vectors, now)
        shared = None if user_id == SHARED else await self._of_all(query, phrases, vectors, now)
        everything = [own] if shared is None else [own, shared]
        keys, ranked, matrix = self._rank(everything, query)
        best = ranked.order[:most]
        hits = await self._hits(user_id, query, everything, keys, ranked, matrix, best, linked)
        trace_id = None
        if traced:
            trace_id = self._ids.new()
            trace = Trace(
                id=trace_id, turn_id=turn_id, purpose=purpose, at=now,
                query=_asked(query, phrases, most, everything),
                results=_results(everything, keys, ranked, matrix, len(hits)),
            )  # fmt: skip
            async with self._database.user(user_id) as tx:
                await traces.write(tx, user_id, trace)
        return MemoryRanking(hits=tuple(hits), dense=own.dense, trace_id=trace_id)

    async def _of(
        self, owner: UUID, query: RecallQuery, phrases: Sequence[str],
        vectors: dict[str, list[Sequence[float]] | None], now: datetime,
    ) -> _Found:  # fmt: skip
        """What one user's memories give, encoding the phrases before the transaction."""
        async with self._database.user(owner) as tx:
            known = await spaces.find(tx, owner)
        dense = "no vectors yet"
        if known is not None:
            model = known.active.model
            if model not in vectors:
                vectors[model] = await self._encode(model, phrases)
            dense = "exact" if vectors[model] is not None else "no encoder"
        async with self._database.user(owner) as tx:
            without = set(await memory_search.docs_of(tx, owner, list(query.exclude)))
            only = None
            if query.as_of is not None:
                only = set(await memory_search.true_at(tx, owner, query.as_of))
            found: dict[str, lanes.Lane] = {}
            if known is not None and (encoded := vectors[known.active.model]) is not None:
                found["dense"] = await lanes.dense(tx, owner, known.active, encoded, without, only)
            found["lexical"] = await lanes.lexical(tx, owner, phrases, without, only)
            found["entity"] = await lanes.entity(tx, owner, query.entities, phrases, without, only)
            docs = list(dict.fromkeys(doc for lane in found.values() for doc in lane))
            return _Found(
                owner=owner, lanes=found, dense=dense,
                candidates=await memory_search.candidates(tx, owner, docs, now),
                use_day=await memories.use_days(tx, owner),
            )  # fmt: skip

    async def _of_all(
        self, query: RecallQuery, phrases: Sequence[str],
        vectors: dict[str, list[Sequence[float]] | None], now: datetime,
    ) -> _Found | None:  # fmt: skip
        async with self._database.user(SHARED) as tx:
            there = await memory_search.any_active(tx, SHARED)
        return await self._of(SHARED, query, phrases, vectors, now) if there else None

    async def _encode(self, model: str, phrases: Sequence[str]) -> list[Sequence[float]] | None:
        encoder = self._encoders.of(model)
        if encoder is None or not phrases:
            return None
        try:
            return [vector.tolist() for vector in await encoder.queries(phrases)]
        except Unavailable:
            # Words alone find most things; better than nothing.
            return None

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
        linked: int,
    ) -> list[MemoryHit]:  # fmt: skip
        rows: dict[UUID, Memory] = {}
        along: dict[UUID, list[LinkedMemory]] = {}
        for at, one in enumerate(everything):
            ids = [one.candidates[keys[n][1]].id for n in best if keys[n][0] == at]
            if not ids:
                continue
            async with self._database.user(one.owner) as tx:
                rows |= await memories.find(tx, one.owner, ids)
                if linked:
                    along |= await belonging(
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


async def belonging(
    tx: Tx, user_id: UUID, hits: Sequence[Memory], *, limit: int,
    without: frozenset[UUID] = frozenset(), as_of: datetime | None = None,
    depth: int = LINK_DEPTH,
) -> dict[UUID, list[LinkedMemory]]:  # fmt: skip
    """For each of these memories at most `limit` others that belong to it and are not among them:
    of a superseded one first what stands in its place (unless an earlier date counts), then those
    linked most strongly. With `as_of`, only what was true then."""
    found = await linking.ways(tx, user_id, [one.id for one in hits], depth=depth)
    closed = [one.id for one in hits if as_of is None and one.superseded_by is not None]
    instead = await linking.standing(tx, user_id, closed) if closed else {}
    wanted = {way.at for ways in found.values() for way in ways} | set(instead.values())
    rows = await memories.find(tx, user_id, list(wanted))
    among = {one.id for one in hits}
    result: dict[UUID, list[LinkedMemory]] = {}
    for one in hits:
        brought: list[LinkedMemory] = []
        first = instead.get(one.id)
        if first is not None:
            brought.append(linking.successor(one, rows[first]))
        for way in found[one.id]:
            memory = rows.get(way.at)
            if (
                memory is None or memory.status != "active" or memory.id == first
                or memory.id in without or memory.id in among or len(brought) >= limit
                or not _true_at(memory, as_of)
            ):  # fmt: skip
                continue
            brought.append(linking.reached(way, memory))
        result[one.id] = brought
    return result


def _true_at(memory: Memory, at: datetime | None) -> bool:
    if at is None:
        return True
    return memory.valid_from <= at and (memory.valid_to is None or memory.valid_to > at)


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
    query: RecallQuery, phrases: Sequence[str], limit: int, everything: Sequence[_Found]
) -> dict[str, Any]:
    return {
        "phrases": list(phrases), "entities": list(query.entities), "intent": query.intent,
        "limit": limit, "as_of": query.as_of, "excluded": len(query.exclude),
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
