"""What the memory benchmark measures on a filled database. Times are in milliseconds."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from time import perf_counter
from typing import Any
from uuid import UUID

import asyncpg
import numpy as np

from bench.memory_data import Writer
from bench.memory_house import House
from bench.report import quantile
from mira.memory import lanes
from mira.memory.model import NewMemory
from mira.memory.query import RecallQuery
from mira.store import postings, spaces
from mira.store.spaces import Source

Row = dict[str, Any]
#: What recall looks at.
TOP = 20
#: What a search of twenty takes of a lane.
MOST = lanes.depth(TOP)


def timings(name: str, took: Sequence[float]) -> Row:
    return {
        "what": name, "n": len(took),
        **{f"p{int(q * 100)}": round(quantile(took, q), 2) for q in (0.5, 0.95, 0.99)},
    }  # fmt: skip


async def _timed(took: list[float], work: Awaitable[Any]) -> Any:
    begun = perf_counter()
    result = await work
    took.append((perf_counter() - begun) * 1000)
    return result


async def searches(
    house: House, writer: Writer, users: Sequence[tuple[int, UUID]], each: int
) -> list[Row]:
    """Whole searches, the embedding of a question that is new included, and each lane alone."""
    took: dict[str, list[float]] = {
        name: [] for name in ("whole", "embedding", "dense", "lexical", "entity")
    }
    for number, user in users:
        asked = writer.questions(number, 2 * each + 3)
        for question in asked[:3]:
            await house.memories.search(user, RecallQuery(phrases=(question,)))
        for question in asked[3 : each + 3]:
            query = RecallQuery(phrases=(question,))
            await _timed(took["whole"], house.memories.search(user, query))
        for question in asked[each + 3 :]:
            vector = await _timed(took["embedding"], house.embedder.query(question))
            async with house.database.user(user) as tx:
                ours = await spaces.find(tx, user)
                whole = await postings.corpus(tx, user, Source.MEMORIES)
                assert ours is not None
                query_vector = [vector.tolist()]
                meaning = lanes.dense(
                    tx, user, whole, ours.active, query_vector, (), None, most=MOST
                )
                await _timed(took["dense"], meaning)
                await _timed(
                    took["lexical"], lanes.lexical(tx, user, whole, [question], (), None, most=60)
                )
                names = lanes.entity(tx, user, whole, (), [question], (), None)
                await _timed(took["entity"], names)
    return [timings(name, values) for name, values in took.items()]


async def recall(
    house: House, writer: Writer, users: Sequence[tuple[int, UUID]], count: int, each: int
) -> Row:
    """Of the 20 nearest by exact arithmetic on the vectors as they were written, how many the
    dense lane has among its own 20; inside each user."""
    shares = []
    for number, user in users:
        vectors = writer.batch(number, count).vectors
        for question in writer.questions(number, each):
            query = await house.embedder.query(question)
            exact = np.argsort(-(vectors @ query), kind="stable")[:TOP] + 1
            async with house.database.user(user) as tx:
                ours = await spaces.find(tx, user)
                assert ours is not None
                whole = await postings.corpus(tx, user, Source.MEMORIES)
                lane = await lanes.dense(
                    tx, user, whole, ours.active, [query.tolist()], (), None, most=60
                )
            found = sorted(lane, key=lambda doc: -lane[doc])[:TOP]
            shares.append(len(set(found) & set(exact.tolist())) / min(TOP, count))
    return {
        "what": f"recall@{TOP}", "n": len(shares), "mean": round(float(np.mean(shares)), 4),
        "worst": round(min(shares), 4),
    }  # fmt: skip


async def writes(house: House, user: UUID, count: int) -> Row:
    """New memories, one after the other, with all that belongs to it: encoded, compared with those
    that stand, indexed, accounted for."""
    took: list[float] = []
    begun = perf_counter()
    for n in range(count):
        text = f"On day {n} somebody in town number {n * 37} wrote down {n * 11} new things"
        new = NewMemory(text=text, source="user")
        await _timed(took, house.memories.create(user, new, actor="user"))
    rate = count / (perf_counter() - begun)
    return {**timings("write", took), "per_s": round(rate, 1)}


async def rescoring(house: House, user: UUID) -> list[Row]:
    """All scores of a user anew: when every one has changed, and when none has."""

    async def run() -> int:
        async with house.database.user(user) as tx:
            return await house.memories.recalculate(tx, user)

    rows = []
    for name in ("rescoring, all changed", "rescoring, none changed"):
        begun = perf_counter()
        changed = await run()
        rows.append({"what": name, "changed": changed, "seconds": round(perf_counter() - begun, 2)})
    return rows


async def sizes(house: House) -> list[Row]:
    """How large the tables are, with their indexes, in megabytes."""
    connection = await asyncpg.connect(**house.owner)
    try:
        rows = await connection.fetch(
            "select relname, pg_total_relation_size(oid) as bytes from pg_class "
            "where relkind = 'r' and relnamespace = 'public'::regnamespace order by 2 desc limit 6"
        )
        whole = await connection.fetchval("select pg_database_size(current_database())")
    finally:
        await connection.close()
    table = {row["relname"]: round(row["bytes"] / 2**20, 1) for row in rows}
    return [{"what": "size", "database_mb": round(whole / 2**20), **table}]
