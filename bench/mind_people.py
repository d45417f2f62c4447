"""People with a past, for the turn benchmark: so many memories, so much history, a key each.

Written directly into the database of the running server, with the real model's vectors (see
memory_data and history_fill). Nobody's day begins with the run: what is done once a day is not what
is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import asyncpg
import msgspec
import numpy as np

from bench.history_fill import TABLES, fill_history
from bench.memory_data import DOINGS, PEOPLE, PLACES, Writer
from bench.memory_fill import fill
from mira.clock import SystemClock
from mira.ids import SeededIds, SystemIds
from mira.memory.embedding import DEFAULT_MODEL, Embedder, backend_for
from mira.memory.pool import CpuPool
from mira.services.postgres import ConnectArguments
from mira.store import keys
from mira.store.database import Database

#: Doings in the sentences where only a few memories are wanted: all of them take seconds to encode.
FEW = 1
#: So many different answers of the Subcortex: more phrases than the embedder remembers.
ANSWERS = 4000


@dataclass(frozen=True)
class Group:
    """Some users with as much behind them as each other."""

    memories: int
    history: int
    users: tuple[UUID, ...]
    keys: tuple[str, ...]


class Past:
    """Makes groups of people. Use as an asynchronous context: it holds the model."""

    def __init__(
        self, connect: Callable[[str], Mapping[str, Any]], models: Path, most: int
    ) -> None:
        """`connect` says how a role reaches the database; `most` memories anyone will have."""
        self._connect = connect
        self._few = most < 100
        self._pool = CpuPool(1)
        self._embedder = Embedder(backend_for(DEFAULT_MODEL, models), self._pool, SystemClock())
        self._made = 0

    async def __aenter__(self) -> Past:
        await self._embedder.warm()
        sentences: list[str] = []
        doings = FEW if self._few else len(DOINGS)

        def collect(texts: Sequence[str]) -> Any:
            sentences.extend(texts)
            return np.zeros((len(texts), self._embedder.dimension), np.float32)

        Writer(collect, doings=doings)
        encoded = await self._embedder.texts(sentences)
        self._writer = Writer(lambda _: encoded, doings=doings)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._embedder.aclose()
        await self._pool.aclose()

    async def group(self, memories: int, history: int, users: int) -> Group:
        """Make a group: some seconds for every ten thousand memories or messages."""
        self._made += 1
        now = SystemClock().now()
        owner = self._connect("postgres")

        async def past(connection: Any, ids: SeededIds, user: UUID, space: int) -> None:
            # Other texts than the memories are.
            batch = self._writer.batch(1000 + self._made, history)
            await fill_history(connection, ids, user, space, batch, now)
            await connection.execute(
                "update conversations set last_use_date = $2 where user_id = $1",
                user, now.date(),
            )  # fmt: skip

        made = await fill(
            cast(ConnectArguments, owner), self._writer, self._embedder.model,
            memories * users, users, lambda _: None, more=past, seed=self._made,
        )  # fmt: skip
        connection = await asyncpg.connect(**owner)
        try:
            for table in TABLES:
                await connection.execute(f"vacuum analyze {table}")
        finally:
            await connection.close()
        return Group(memories, history, tuple(made), tuple(await self._keys(made)))

    async def _keys(self, users: Sequence[UUID]) -> list[str]:
        ids, now = SystemIds(), SystemClock().now()
        database = await Database.open(
            self._connect("mira_app"), self._connect("mira_engine"), size=2
        )
        try:
            made = []
            for user in users:
                async with database.engine() as tx:
                    new = await keys.create(tx, ids, user, name="bench", scope="chat", now=now)
                made.append(new.key)
            return made
        finally:
            await database.aclose()


def answers(count: int = ANSWERS) -> list[str]:
    """What the Subcortex says: three phrases each, none of them twice, about what is remembered."""
    random = np.random.default_rng(11)
    made = []
    for n in range(count):
        who, where = random.integers(len(PEOPLE)), random.integers(len(PLACES), size=3)
        doings = random.choice(len(DOINGS), 3, replace=False)
        phrases = [
            f"{PEOPLE[who]} {DOINGS[doing]} {PLACES[place]} {3 * n + at}"
            for at, (doing, place) in enumerate(zip(doings, where, strict=True))
        ]
        answer = {
            "phrases": phrases, "entities": [PEOPLE[who]], "keep": [], "complexity": "complex",
        }  # fmt: skip
        made.append(msgspec.json.encode(answer).decode())
    return made
