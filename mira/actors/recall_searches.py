"""The searches of a turn: what was kept in context, what the phrases find, what the replies find.

Each raises what its store raises; isolating them is the caller's (see recall.py).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from mira.actors.recalled import FoundBy, Wanted
from mira.memory import linking
from mira.memory.memories import Memories
from mira.memory.model import LinkedMemory, Memory
from mira.memory.passages import PassageRanking, PassageSearch
from mira.memory.query import RecallQuery
from mira.memory.surfacing import CAP, LINKED, PASSAGES, Offer
from mira.messages.content import plain_text
from mira.store import history, memories, passage_search, postings, spaces, vectors
from mira.store.database import Database
from mira.store.memory_search import SHARED
from mira.store.spaces import Source

#: How like a memory must be to a reply to be found by it, how many are, and how many pieces of the
#: replies are compared. Stricter than a search: nobody has asked for these.
LIKENESS, LIKE_REPLIES, PIECES = 0.55, 3, 6
#: Passages that are asked for: some may be in the prompt already.
MOST_PASSAGES = 3 * PASSAGES
#: What a memory's relevance counts for in its rank; a passage has no importance to add to that.
RELEVANCE = 0.75


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A memory that may be shown."""

    memory: Memory
    score: float
    found_by: FoundBy
    linked: tuple[LinkedMemory, ...] = ()

    @property
    def id(self) -> UUID:
        return self.memory.id

    @property
    def importance(self) -> float:
        return self.memory.importance

    @property
    def offer(self) -> Offer:
        return Offer(
            id=self.id, score=self.score, linked=tuple(one.memory.id for one in self.linked)
        )


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a search of memories found, best first."""

    candidates: tuple[Candidate, ...] = ()
    trace_id: UUID | None = None


@dataclass(frozen=True, kw_only=True)
class Searches:
    """The searches of all users. Safe to use from many tasks at once."""

    database: Database
    memories: Memories
    passages: PassageSearch

    async def in_context(self, wanted: Wanted) -> tuple[Candidate, ...]:
        """The memories of the last turn that are still active, in the order given."""
        found: dict[UUID, Candidate] = {}
        for owner in (wanted.user_id, SHARED):
            missing = [one for one in wanted.surfaced if one not in found]
            if missing:
                rows = await self._loaded(owner, missing, wanted.held)
                found |= {
                    one.id: Candidate(
                        memory=one, score=one.importance, found_by="retained", linked=linked
                    )
                    for one, linked in rows
                    if one.status == "active"
                }
        return tuple(found[one] for one in dict.fromkeys(wanted.surfaced) if one in found)

    async def of_phrases(
        self, wanted: Wanted, phrases: Sequence[str], entities: Sequence[str], purpose: str
    ) -> Found:
        """Memories that have to do with the phrases or are about the entities."""
        query = _query(wanted, phrases, entities, CAP)
        if not query.kept_phrases() and not query.entities:
            return Found()
        ranking = await self.memories.search(
            wanted.user_id, query, turn_id=wanted.turn_id, purpose=purpose
        )
        return Found(
            candidates=tuple(
                Candidate(
                    memory=hit.memory, score=min(1.0, hit.score), found_by="search",
                    linked=hit.linked,
                )
                for hit in ranking.hits
            ),
            trace_id=ranking.trace_id,
        )  # fmt: skip

    async def of_history(
        self, wanted: Wanted, phrases: Sequence[str], entities: Sequence[str]
    ) -> PassageRanking | None:
        """Messages of the history that answer a phrase; None if nothing is asked."""
        query = _query(wanted, phrases, entities, MOST_PASSAGES)
        if not query.kept_phrases() and not query.entities:
            return None
        return await self.passages.search(wanted.user_id, query)

    async def of_replies(self, wanted: Wanted) -> tuple[Candidate, ...]:
        """Memories like the last replies, by the vectors that the index holds of these: nothing is
        encoded, and a reply that is not taken in yet finds nothing.

        Those of the last turn are left out: whether they stay has been decided.
        """
        if not wanted.replies:
            return ()
        user_id = wanted.user_id
        async with self.database.user(user_id) as tx:
            known = await spaces.find(tx, user_id)
            docs = await passage_search.docs_of(tx, user_id, wanted.replies)
            if known is None or not docs:
                return ()
            space = known.active
            said = await passage_search.stored(tx, user_id, space, docs)
            # Units from 1 are the pieces of a message; the first ones of each come first.
            first = [at for at in np.argsort(said.units, kind="stable") if said.units[at] > 0]
            whole = await postings.corpus(tx, user_id, Source.MEMORIES)
            likeness: dict[int, float] = {}
            for at in first[:PIECES]:
                piece = said.vectors[at].tolist()
                near = await vectors.nearest(
                    tx, user_id, Source.MEMORIES, space, piece, documents=whole.documents,
                    limit=LIKE_REPLIES + len(wanted.surfaced),
                )  # fmt: skip
                for one in near:
                    if one.similarity >= LIKENESS:
                        likeness[one.doc] = max(one.similarity, likeness.get(one.doc, 0.0))
            rows = await memories.active_texts(tx, user_id, list(likeness))
        passed_over = wanted.held.union(wanted.surfaced)
        alike = {row.id: likeness[row.doc] for row in rows if row.id not in passed_over}
        best = sorted(alike, key=lambda one: -alike[one])[:LIKE_REPLIES]
        return tuple(
            Candidate(
                memory=memory, found_by="reply", linked=linked,
                score=RELEVANCE * alike[memory.id] + (1 - RELEVANCE) * memory.importance,
            )
            for memory, linked in await self._loaded(user_id, best, wanted.held)
        )  # fmt: skip

    async def texts(self, user_id: UUID, messages: Sequence[UUID]) -> Mapping[UUID, str]:
        """The words of messages."""
        if not messages:
            return {}
        async with self.database.user(user_id) as tx:
            found = await history.of_ids(tx, user_id, messages)
        return {one.id: plain_text(one.blocks).strip() for one in found}

    async def _loaded(
        self, owner: UUID, wanted: Sequence[UUID], held: Collection[UUID]
    ) -> list[tuple[Memory, tuple[LinkedMemory, ...]]]:
        """Those of these memories that exist, in this order, with what belongs to each."""
        if not wanted:
            return []
        async with self.database.user(owner) as tx:
            rows = await memories.find(tx, owner, wanted)
            there = [rows[one] for one in wanted if one in rows]
            superseded = {one.id: one.superseded_by is not None for one in there}
            _, beside = await linking.belonging(
                tx, owner, superseded, limit=LINKED, without=frozenset(held)
            )
        return [(one, tuple(beside.get(one.id, ()))) for one in there]


def _query(
    wanted: Wanted, phrases: Sequence[str], entities: Sequence[str], limit: int
) -> RecallQuery:
    return RecallQuery(
        phrases=tuple(phrases), entities=tuple(entities), limit=limit, exclude=wanted.held
    )
