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
from mira.memory.search import MemoryHit
from mira.memory.surfacing import CAP, LINKED, PASSAGES
from mira.messages.content import plain_text
from mira.store import (
    history,
    memories,
    passage_search,
    postings,
    signatures,
    spaces,
    vectors,
)
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
#: A memory with less than this cosine to a phrase, not among so many by its words and not about
#: anybody who is named, has nothing to do with the question: this is what its rank then counts.
NEAR, WORDS, FAR = 0.3, 5, 0.3


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A memory that may be shown."""

    memory: Memory
    score: float
    found_by: FoundBy

    @property
    def id(self) -> UUID:
        return self.memory.id

    @property
    def importance(self) -> float:
        return self.memory.importance


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
        found: dict[UUID, Memory] = {}
        for owner in (wanted.user_id, SHARED):
            missing = [one for one in wanted.surfaced if one not in found]
            if missing:
                async with self.database.user(owner) as tx:
                    found |= await memories.find(tx, owner, missing)
        return tuple(
            Candidate(memory=found[one], score=found[one].importance, found_by="retained")
            for one in dict.fromkeys(wanted.surfaced)
            if one in found and found[one].status == "active"
        )

    async def of_phrases(
        self, wanted: Wanted, phrases: Sequence[str], entities: Sequence[str], purpose: str
    ) -> Found:
        """Memories that have to do with the phrases or are about the entities."""
        query = _query(wanted, phrases, entities, CAP)
        if not query.kept_phrases() and not query.entities:
            return Found()
        # What is linked is read for those alone that are shown: see `beside`.
        ranking = await self.memories.search(
            wanted.user_id, query, turn_id=wanted.turn_id, purpose=purpose, linked=0
        )
        by_meaning = any("dense" in hit.lanes for hit in ranking.hits)
        candidates = [
            Candidate(memory=hit.memory, score=_score(hit, by_meaning), found_by="search")
            for hit in ranking.hits
        ]
        return Found(
            candidates=tuple(sorted(candidates, key=lambda one: -one.score)),
            trace_id=ranking.trace_id,
        )

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
            signs = None
            if vectors.method(whole.documents) == "signs" and first:
                signs = await signatures.read(tx, user_id, Source.MEMORIES, space)
            likeness: dict[int, float] = {}
            for at in first[:PIECES]:
                piece = said.vectors[at].tolist()
                near = await vectors.nearest(
                    tx, user_id, Source.MEMORIES, space, piece, documents=whole.documents,
                    limit=LIKE_REPLIES + len(wanted.surfaced), signs=signs,
                )  # fmt: skip
                for one in near:
                    if one.similarity >= LIKENESS:
                        likeness[one.doc] = max(one.similarity, likeness.get(one.doc, 0.0))
            rows = await memories.active_texts(tx, user_id, list(likeness))
        passed_over = wanted.held.union(wanted.surfaced)
        alike = {row.id: likeness[row.doc] for row in rows if row.id not in passed_over}
        best = sorted((row for row in rows if row.id in alike), key=lambda row: -alike[row.id])
        return tuple(
            Candidate(
                memory=row, found_by="reply",
                score=RELEVANCE * alike[row.id] + (1 - RELEVANCE) * row.importance,
            )
            for row in best[:LIKE_REPLIES]
        )  # fmt: skip

    async def texts(self, user_id: UUID, messages: Sequence[UUID]) -> Mapping[UUID, str]:
        """The words of messages."""
        if not messages:
            return {}
        async with self.database.user(user_id) as tx:
            found = await history.of_ids(tx, user_id, messages)
        return {one.id: plain_text(one.blocks).strip() for one in found}

    async def beside(
        self, shown: Sequence[Memory], held: Collection[UUID]
    ) -> Mapping[UUID, Sequence[LinkedMemory]]:
        """For each memory that is shown what belongs to it, of what is not shown itself."""
        linked: dict[UUID, list[LinkedMemory]] = {}
        for owner in dict.fromkeys(one.user_id for one in shown):
            superseded = {
                one.id: one.superseded_by is not None for one in shown if one.user_id == owner
            }
            async with self.database.user(owner) as tx:
                _, found = await linking.belonging(
                    tx, owner, superseded, limit=LINKED, without=frozenset(held)
                )
            linked |= found
        return linked


def _query(
    wanted: Wanted, phrases: Sequence[str], entities: Sequence[str], limit: int
) -> RecallQuery:
    return RecallQuery(
        phrases=tuple(phrases), entities=tuple(entities), limit=limit, exclude=wanted.held
    )


def _score(hit: MemoryHit, by_meaning: bool) -> float:
    """The rank of a hit among memories and passages.

    A search ranks what there is: the best of what has nothing to do with the question still comes
    first. Such a hit gives way to all that has something to do with it.
    """
    score = min(1.0, hit.score)
    place, _ = hit.lanes.get("lexical", (WORDS + 1, 0.0))
    _, cosine = hit.lanes.get("dense", (0, 0.0))
    far = by_meaning and cosine < NEAR and place > WORDS and "entity" not in hit.lanes
    return score * FAR if far else score
