"""How long a search over a long history takes: `python -m bench.recall_load --rows N`.

One user's history of N messages, invented as those of `mira bench memory` are and put in by COPY
as HistoryIndex would write it; searched with the real model for sentences that are in it.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from time import perf_counter
from typing import Any
from uuid import UUID

import asyncpg
import numpy as np
import uvloop

from bench.memory_data import Writer
from bench.memory_fill import NOW
from bench.memory_house import House, house
from bench.report import quantile
from mira.ids import SeededIds
from mira.memory.passage_pool import DEPTH
from mira.memory.passages import PassageSearch
from mira.memory.query import RecallQuery
from mira.memory.terms import term_frequencies
from mira.store import passage_search, spaces, vectors
from mira.store.database import Database
from mira.store.spaces import Source, Space

#: Messages of one segment.
SEGMENT = 40
_TABLES = (
    "users", "conversations", "segments", "turns", "messages", "passages", "postings",
    "term_counts", "corpora", "vectors_384", "signatures", "embedding_spaces",
)  # fmt: skip


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


async def _fill(ready: House, batch: Any) -> tuple[UUID, Space]:
    ids, count = SeededIds(3), len(batch.texts)
    user = ids.new()
    numbers = [at + 1 + at // SEGMENT for at in range(count)]
    segments = [ids.new() for _ in range(count // SEGMENT + 1)]
    messages = [ids.new() for _ in range(count)]
    terms = [term_frequencies(text) for text in batch.texts]
    at = [NOW - timedelta(minutes=count - n) for n in range(count)]
    connection = await asyncpg.connect(**ready.owner)
    try:
        await connection.execute("set session_replication_role = replica")
        await connection.execute(
            "insert into users (id, name, created_at) values ($1, 'load', $2)", user, NOW
        )
        await connection.execute(
            "insert into conversations (user_id, id, created_at) values ($1, $1, $2)", user, NOW
        )
        await connection.copy_records_to_table(
            "passages",
            columns=["user_id", "doc", "message_id", "segment_id", "turn_seq", "role", "said_at",
                     "length", "asks", "timed", "counted"],
            records=[
                (user, numbers[n], messages[n], segments[n // SEGMENT], n + 1,
                 "assistant" if n % 2 else "user", at[n], terms[n].total(), n % 7 == 0,
                 n % 5 == 0, n % 4 == 0)
                for n in range(count)
            ],
        )  # fmt: skip
        rows = sorted(
            (term, numbers[n], tf, one.total()) for n, one in enumerate(terms)
            for term, tf in one.items()
        )  # fmt: skip
        await connection.copy_records_to_table(
            "postings", records=[(user, 2, *row) for row in rows]
        )
        held = Counter(term for one in terms for term in one)
        await connection.copy_records_to_table(
            "term_counts", records=[(user, 2, term, n) for term, n in sorted(held.items())]
        )
        await connection.execute(
            "insert into corpora values ($1, 2, $2, $3, $4)",
            user, count, sum(one.total() for one in terms), numbers[-1] + 1,
        )  # fmt: skip
    finally:
        await connection.close()
    around = (
        batch.vectors + 0.5 * np.roll(batch.vectors, 1, 0) + 0.5 * np.roll(batch.vectors, -1, 0)
    )
    around /= np.linalg.norm(around, axis=1, keepdims=True)
    async with ready.database.user(user) as tx:
        space = (await spaces.ensure(tx, user, ready.embedder.model, 384, NOW)).active
    for start in range(0, count, 2000):
        both = [
            (numbers[n], unit, source[n].tolist())
            for n in range(start, min(count, start + 2000))
            for unit, source in ((0, around), (1, batch.vectors))
        ]
        async with ready.database.user(user) as tx:
            await vectors.put(tx, user, Source.PASSAGES, space, both)
    connection = await asyncpg.connect(**ready.owner)
    try:
        for table in _TABLES:
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
