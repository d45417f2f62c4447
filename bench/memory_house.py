"""The Postgres, the schema and the embedding model that the memory benchmark runs on."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from mira.clock import SystemClock
from mira.ids import SystemIds
from mira.memory.embedding import DEFAULT_MODEL, Embedder, backend_for
from mira.memory.memories import Memories
from mira.memory.pool import CpuPool
from mira.services.home import Home
from mira.services.postgres import ConnectArguments, EmbeddedPostgres
from mira.store.database import Database
from mira.store.memory_search import SHARED
from mira.store.migrate import migrate

#: Searches of the benchmark come one after the other.
CONNECTIONS = 2


class OneEncoder:
    """The encoders of the benchmark: one."""

    def __init__(self, embedder: Embedder) -> None:
        self.current = embedder

    def of(self, model: str) -> Embedder | None:
        return self.current if self.current.model == model else None


@dataclass(frozen=True)
class House:
    owner: ConnectArguments
    database: Database
    embedder: Embedder
    encoders: OneEncoder
    memories: Memories

    async def backends(self) -> list[int]:
        """The processes of the database that work for this one, as many as there can be."""
        async with AsyncExitStack() as held:
            found = []
            for _ in range(CONNECTIONS):
                tx = await held.enter_async_context(self.database.user(SHARED))
                found.append(await tx.value("select pg_backend_pid()"))
        return found


@asynccontextmanager
async def house(kept: Path | None = None) -> AsyncIterator[House]:
    """Start everything in a temporary home, as the server would, and end it afterwards; in `kept`,
    if it is given, which stays."""
    base = kept or Path(tempfile.mkdtemp(prefix="mira-bench-", dir="/tmp"))
    base.mkdir(parents=True, exist_ok=True)
    clock, ids = SystemClock(), SystemIds()
    home = Home(base)
    postgres = EmbeddedPostgres(home, clock=clock)
    pool = CpuPool(1)
    embedder = Embedder(backend_for(DEFAULT_MODEL, base / "models"), pool, clock)
    try:
        (base / "models").mkdir(exist_ok=True)
        await postgres.start()
        owner = postgres.dsn("postgres")
        await migrate(dict(owner), None, clock.now())
        await embedder.warm()
        database = await Database.open(
            dict(postgres.dsn("mira_app")), dict(postgres.dsn("mira_engine")), size=CONNECTIONS
        )
        encoders = OneEncoder(embedder)
        try:
            yield House(
                owner, database, embedder, encoders,
                Memories(database, encoders, None, clock, ids),
            )  # fmt: skip
        finally:
            await database.aclose()
    finally:
        await embedder.aclose()
        await pool.aclose()
        await postgres.stop()
        home.close()
        if kept is None:
            shutil.rmtree(base, ignore_errors=True)
