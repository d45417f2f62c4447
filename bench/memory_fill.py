"""Puts many memories into a database: by COPY, the same rows that Memories writes one at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any
from uuid import UUID

import asyncpg
import numpy as np

from bench.memory_data import PEOPLE, PLACES, Batch, Floats, Writer
from mira.ids import SeededIds
from mira.services.postgres import ConnectArguments
from mira.store.memory_jobs import Job

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
#: Use-days that the users have behind them.
USE_DAYS = 200
_MAGIC = b"PGCOPY\n\xff\r\n\0" + b"\0" * 8

Connection = Any
#: Writes more of a user: the connection, ids to use, the user, and the number of the space.
More = Callable[[Connection, SeededIds, UUID, int], Awaitable[None]]


@dataclass(frozen=True)
class Filled:
    """The users that were made, and how long it took."""

    users: list[UUID]
    seconds: float


async def fill(
    owner: ConnectArguments, writer: Writer, model: str, rows: int, users: int, tell: Any,
    *, more: More | None = None, seed: int | None = None,
) -> list[UUID]:  # fmt: skip
    """Make `users` users with `rows` memories between them; returns their ids.

    `more` writes further rows of each user in the same transaction; `seed` sets the ids apart from
    those of other calls.
    """
    ids = SeededIds(users * 31 + rows if seed is None else seed)
    made = []
    connection = await asyncpg.connect(**owner)
    try:
        # No look-up of what each of millions of rows refers to: they are made in the right order.
        await connection.execute("set session_replication_role = replica")
        space = await connection.fetchval(
            "insert into embedding_models (name, dimension, created_at) values ($1, 384, $2) "
            "on conflict (name) do update set name = excluded.name returning id",
            model, NOW,
        )  # fmt: skip
        for n in range(users):
            count = rows // users + (n < rows % users)
            user = ids.new()
            async with connection.transaction():
                await _user(connection, user, space)
                if count:
                    await _memories(connection, ids, user, space, writer.batch(n, count))
                if more is not None:
                    await more(connection, ids, user, space)
            made.append(user)
            tell(count)
        # One at a time: together they would want more shared memory than containers give.
        for table in (
            "memories", "memory_scores", "postings", "term_counts", "vectors_384", "entities",
            "memory_entities", "memory_links", "corpora", "signatures", "embedding_spaces",
            "conversations",
        ):  # fmt: skip
            await connection.execute(f"vacuum analyze {table}")
    finally:
        await connection.close()
    return made


async def _user(connection: Connection, user: UUID, space: int) -> None:
    await connection.execute(
        "insert into users (id, name, created_at) values ($1, $2, $3)", user, f"b{user.hex}", NOW
    )
    await connection.execute(
        "insert into conversations (user_id, id, use_days, created_at) values ($1, $1, $2, $3)",
        user, USE_DAYS, NOW,
    )  # fmt: skip
    await connection.execute(
        "insert into memory_jobs (user_id, job, last_run_use_day, last_run_at) "
        "select $1, unnest($2::text[]), $3, $4",
        user, [job.value for job in Job], USE_DAYS, NOW,
    )  # fmt: skip
    await connection.execute(
        "insert into embedding_spaces (user_id, active, switched_at) values ($1, $2, $3)",
        user, space, NOW,
    )  # fmt: skip


async def _memories(
    connection: Connection, ids: SeededIds, user: UUID, space: int, batch: Batch
) -> None:
    random = np.random.default_rng(int.from_bytes(user.bytes[:8], "big"))
    memories = [ids.new() for _ in batch.texts]
    age = np.sort(random.integers(0, USE_DAYS, len(memories)))[::-1]
    await connection.copy_records_to_table(
        "memories",
        columns=["id", "user_id", "short_id", "doc", "text", "source", "valid_from", "created_at",
                 "updated_at"],
        records=[
            (memories[at], user, f"mem_{at:08x}", at + 1, batch.texts[at], "extraction",
             when := NOW - timedelta(days=int(age[at])), when, when)
            for at in range(len(memories))
        ],
    )  # fmt: skip
    uses = random.poisson(1.0, len(memories))
    await connection.copy_records_to_table(
        "memory_scores",
        columns=["memory_id", "user_id", "importance", "use_day_created", "use_day_accessed",
                 "access_count", "mention_count", "integrated_at"],
        records=[
            (memories[at], user, 0.0, USE_DAYS - int(age[at]),
             USE_DAYS - int(age[at] * random.random()) if uses[at] else None, int(uses[at]), 0, NOW)
            for at in range(len(memories))
        ],
    )  # fmt: skip
    await _index(connection, user, space, batch)
    await _about(connection, ids, user, memories, batch)
    pairs = random.integers(0, len(memories), (len(memories) // 5, 2))
    await connection.copy_records_to_table(
        "memory_links",
        columns=["user_id", "from_id", "to_id", "type", "created_at"],
        records=[
            (user, memories[a], memories[b], "other", NOW)
            for a, b in {tuple(pair) for pair in pairs.tolist()}
            if a != b
        ],
    )


async def _index(connection: Connection, user: UUID, space: int, batch: Batch) -> None:
    documents: Counter[str] = Counter()
    postings = []
    for at, found in enumerate(batch.terms):
        length = found.total()
        documents.update(found.keys())
        postings += [(user, 1, term, at + 1, tf, length) for term, tf in found.items()]
    postings.sort(key=lambda row: (row[2], row[3]))
    await connection.copy_records_to_table("postings", records=postings)
    await connection.copy_records_to_table(
        "term_counts", records=[(user, 1, term, n) for term, n in sorted(documents.items())]
    )
    count = len(batch.texts)
    await connection.execute(
        "insert into corpora values ($1, 1, $2, $3, $4)",
        user, count, sum(found.total() for found in batch.terms), count + 1,
    )  # fmt: skip
    await connection.copy_to_table(
        "vectors_384",
        source=BytesIO(vector_rows(user, 1, space, range(1, count + 1), 0, batch.vectors)),
        format="binary",
    )
    # Documents begin with 1; 32 of them lie in a row.
    signs = np.zeros((-(-(count + 1) // 32) * 32, 48), np.uint8)
    signs[1 : count + 1] = np.packbits(batch.vectors > 0, axis=1)
    await connection.copy_records_to_table(
        "signatures",
        records=[
            (user, 1, space, block, signs[block * 32 : block * 32 + 32].tobytes())
            for block in range(len(signs) // 32)
        ],
    )


def vector_rows(
    user: UUID, source: int, space: int, docs: Sequence[int], unit: int, vectors: Floats
) -> bytes:
    """Rows of vectors_384 as COPY reads them in binary, since halfvec has no codec."""
    count, dimension = vectors.shape
    row = np.dtype(
        [
            ("fields", ">i2"), ("l1", ">i4"), ("user", "V16"), ("l2", ">i4"), ("source", ">i2"),
            ("l3", ">i4"), ("model", ">i2"), ("l4", ">i4"), ("doc", ">i4"), ("l5", ">i4"),
            ("unit", ">i2"), ("l6", ">i4"), ("dim", ">i2"), ("unused", ">i2"),
            ("v", ">f2", (dimension,)),
        ]
    )  # fmt: skip
    rows = np.zeros(count, row)
    rows["fields"] = 6
    for name, size in (("l1", 16), ("l2", 2), ("l3", 2), ("l4", 4), ("l5", 2)):
        rows[name] = size
    rows["l6"] = 4 + 2 * dimension
    rows["user"] = np.void(user.bytes)
    rows["source"], rows["model"], rows["dim"] = source, space, dimension
    rows["doc"], rows["unit"] = docs, unit
    rows["v"] = vectors
    return _MAGIC + rows.tobytes() + b"\xff\xff"


async def _about(
    connection: Connection, ids: SeededIds, user: UUID, memories: list[UUID], batch: Batch
) -> None:
    names = [(name, "PERSON") for name in PEOPLE] + [(name, "GPE") for name in PLACES]
    entities = [ids.new() for _ in names]
    await connection.copy_records_to_table(
        "entities",
        columns=["id", "user_id", "name", "key", "type", "created_at"],
        records=[
            (one, user, name, name.lower(), kind, NOW)
            for one, (name, kind) in zip(entities, names, strict=True)
        ],
    )
    about = [
        (user, memories[at], entities[place])
        for at in range(len(memories))
        for place in (int(batch.people[at]), len(PEOPLE) + int(batch.places[at]))
    ]
    await connection.copy_records_to_table("memory_entities", records=about)
