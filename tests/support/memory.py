"""Memories of a test: the real store, the real embedding model, a clock that is moved by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any
from uuid import UUID

from mira.clock import ManualClock, SystemClock
from mira.ids import SystemIds
from mira.memory.embedding import Embedder
from mira.memory.encoding import Encoder
from mira.memory.memories import Memories
from mira.memory.model import EntityName, NewMemory, Stored
from mira.memory.pool import CpuPool
from mira.memory.query import RecallQuery
from mira.memory.search import MemoryHit
from mira.memory.terms import term_frequencies
from mira.store.database import Database
from tests.support.models import minilm

START = datetime.fromisoformat("2026-03-01T12:00:00+00:00")


class OneEncoder:
    """The encoders of a process that has one model, and perhaps those of earlier ones."""

    def __init__(self, current: Encoder | None, *former: Encoder) -> None:
        self.current = current
        self._all = [one for one in (current, *former) if one is not None]

    def of(self, model: str) -> Encoder | None:
        return next((one for one in self._all if one.model == model), None)


@asynccontextmanager
async def real_encoders() -> AsyncIterator[OneEncoder]:
    """The embedder over the real model."""
    pool = CpuPool(1)
    embedder = Embedder(minilm, pool, SystemClock())
    try:
        await embedder.warm()
        yield OneEncoder(embedder)
    finally:
        await embedder.aclose()
        await pool.aclose()


class Remembering:
    """Memories with the few words that tests say all the time."""

    def __init__(self, database: Database, encoders: OneEncoder) -> None:
        self.database = database
        self.encoders = encoders
        self.clock = ManualClock(START)
        self.ids = SystemIds()
        self.memories = Memories(database, encoders, None, self.clock, self.ids)

    async def add(self, user: UUID, text: str, **fields: Any) -> Stored:
        """Remember a fact as the user; `about` are (name, type) of its entities."""
        about = tuple(EntityName(*pair) for pair in fields.pop("about", ()))
        new = NewMemory(text=text, source="user", entities=about, **fields)
        return await self.memories.create(user, new, actor="user")

    async def find(self, user: UUID, *phrases: str, **fields: Any) -> list[MemoryHit]:
        """Search; the hits, best first."""
        query = RecallQuery(phrases=phrases, **fields)
        return list((await self.memories.search(user, query)).hits)

    async def texts(self, user: UUID, *phrases: str, **fields: Any) -> list[str]:
        return [hit.memory.text for hit in await self.find(user, *phrases, **fields)]

    async def live(self, user: UUID, days: int = 1) -> None:
        """Let the user speak on so many days more."""
        async with self.database.user(user) as tx:
            await tx.execute(
                "update conversations set use_days = use_days + $2 where user_id = $1", user, days
            )
        self.clock.advance(days * 86_400)

    async def turn(self, user: UUID) -> UUID:
        """A turn that may be named."""
        turn_id = self.ids.new()
        async with self.database.user(user) as tx:
            await tx.execute(
                "with taken as (update conversations set next_seq = next_seq + 1 "
                "  where user_id = $1 returning next_seq - 1 as seq) "
                "insert into turns (id, user_id, seq, request_id, request_digest, state, "
                "  accepted_at) select $2::uuid, $1, seq, $2::uuid::text, '', 'complete', $3 "
                "from taken",
                user, turn_id, self.clock.now(),
            )  # fmt: skip
        return turn_id

    async def agrees(self, user: UUID) -> None:
        """The index holds exactly the active memories: their terms, counts and vectors."""
        async with self.database.user(user) as tx:
            rows = await tx.fetch(
                "select doc, text from memories where user_id = $1 and status = 'active'", user
            )
            wanted = {row["doc"]: term_frequencies(row["text"]) for row in rows}
            postings = await tx.fetch("select term, doc, tf, length from postings where source = 1")
            counts = await tx.fetch("select term, documents from term_counts where source = 1")
            corpus = await tx.row("select documents, length from corpora where source = 1")
            vectors = await tx.fetch("select doc, unit from vectors_384 where source = 1")
            signs = await tx.fetch("select block, bits from signatures where source = 1")
        assert {(p["term"], p["doc"], p["tf"], p["length"]) for p in postings} == {
            (term, doc, tf, terms.total())
            for doc, terms in wanted.items()
            for term, tf in terms.items()
        }
        documents: dict[str, int] = {}
        for terms in wanted.values():
            for term in terms:
                documents[term] = documents.get(term, 0) + 1
        assert {c["term"]: c["documents"] for c in counts} == documents
        total = (len(wanted), sum(terms.total() for terms in wanted.values()))
        assert (tuple(corpus) if corpus else (0, 0)) == total
        if self.encoders.current is not None:
            found = sorted((v["doc"], v["unit"]) for v in vectors)
            assert found == [(doc, 0) for doc in sorted(wanted)]
            signed = [
                row["block"] * 32 + at
                for row in signs
                for at in range(32)
                if any(row["bits"][at * 48 : at * 48 + 48])
            ]
            assert sorted(signed) == sorted(wanted)


def texts_of(memories: Sequence[Any]) -> list[str]:
    return [one.text for one in memories]
