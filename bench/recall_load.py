"""How long a search over a long history takes: `python -m bench.recall_load --rows N`.

One user's history of N messages, invented as those of `mira bench memory` are and put in by COPY
as HistoryIndex would write it; searched with the real model for sentences that are in it.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from time import perf_counter
from uuid import UUID

import asyncpg
import numpy as np
import uvloop

from bench.history_fill import TABLES, fill_history
from bench.memory_data import Batch, Writer
from bench.memory_fill import NOW
from bench.memory_house import House, house
from bench.report import quantile
from mira.ids import SeededIds
from mira.memory.passage_pool import DEPTH
from mira.memory.passages import PassageSearch
from mira.memory.query import RecallQuery
from mira.store import passage_search, spaces
from mira.store.database import Database
from mira.store.spaces import Space


def main(argv: Sequence[str] | None = None) -> int:
    """Fill, search, print; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.recall_load", description=__doc__)
    parser.add_argument("--rows", type=int, default=6000, help="messages (6000)")
    parser.add_argument("--searches", type=int, default=200, help="(200)")
    options = parser.parse_args(argv)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_measured(options.rows, options.searches))
    return 0


async def _measured(rows: int, searches: int) -> None:
    async with house() as ready:
        sentences: list[str] = []
        Writer(lambda texts: (sentences.extend(texts), np.zeros((len(texts), 384), "f4"))[1])  # type: ignore[func-returns-value]
        encoded = await ready.embedder.texts(sentences)
        batch = Writer(lambda _: encoded).batch(0, rows)
        user, space = await _fill(ready, batch)
        search = PassageSearch(ready.database, ready.encoders)
        random = np.random.default_rng(5)
        took = []
        for number in range(searches + 20):
            words = batch.texts[int(random.integers(rows))].split()
            start = int(random.integers(max(1, len(words) - 8)))
            phrase = f"{number} " + " ".join(words[start : start + 8])
            begun = perf_counter()
            found = await search.search(user, RecallQuery(phrases=(phrase,)))
            took.append((perf_counter() - begun) * 1000)
        took = took[20:]
        shares = {f"p{round(s * 100)}": round(quantile(took, s), 1) for s in (0.5, 0.95, 0.99)}
        print(f"{rows} messages, {found.dense}, {found.candidates} candidates: {shares} ms")
        print(f"recall@20 against exact: {await _against_exact(ready.database, user, space, rows)}")


async def _fill(ready: House, batch: Batch) -> tuple[UUID, Space]:
    ids = SeededIds(3)
    user = ids.new()
    async with ready.database.engine() as tx:
        await tx.execute(
            "insert into users (id, name, created_at) values ($1, 'load', $2)", user, NOW
        )
    async with ready.database.user(user) as tx:
        await tx.execute(
            "insert into conversations (user_id, id, created_at) values ($1, $1, $2)", user, NOW
        )
        space = (await spaces.ensure(tx, user, ready.embedder.model, 384, NOW)).active
    connection = await asyncpg.connect(**ready.owner)
    try:
        await connection.execute("set session_replication_role = replica")
        async with connection.transaction():
            await fill_history(connection, ids, user, space.id, batch, NOW)
        for table in ("users", "embedding_spaces", *TABLES):
            await connection.execute(f"vacuum analyze {table}")
    finally:
        await connection.close()
    return user, space


async def _against_exact(database: Database, user: UUID, space: Space, rows: int) -> float:
    """How many of the 20 nearest of each kind are among the candidates, in the mean of 50."""
    random = np.random.default_rng(9)
    shares = []
    async with database.user(user) as tx:
        for _ in range(50):
            doc = int(random.integers(rows)) + 1
            own = (await passage_search.stored(tx, user, space, [doc])).vectors
            if not len(own):
                continue
            asked = own[-1] + random.normal(0, 0.03, own.shape[1])
            vector = (asked / np.linalg.norm(asked)).tolist()
            found = await passage_search.nearest(
                tx, user, space, vector, documents=rows, limit=DEPTH
            )
            exact = await passage_search.nearest(tx, user, space, vector, documents=0, limit=20)
            shares += [
                len(set(exact.parts) & set(found.parts[:20])) / 20,
                len(set(exact.windows) & set(found.windows[:20])) / 20,
            ]
    return round(float(np.mean(shares)), 4)


if __name__ == "__main__":
    raise SystemExit(main())
