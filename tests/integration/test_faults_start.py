"""What can go wrong before a server serves: other servers, other owners, other schemas."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import copytree
from typing import Any

import anyio
import asyncpg
import pytest

from mira.clock import ManualClock, SystemClock
from mira.errors import DatabaseUnavailable, StartupRefused, ValidationFailed
from mira.ids import SystemIds
from mira.store.canary import prove_isolation
from mira.store.database import Database
from mira.store.migrate import SCHEMA, migrate
from mira.store.roles import ROLES, ensure_roles
from mira.store.server_lock import LOCK, ServerLock
from mira.store.users import ensure_user, get_user
from tests.conftest import EPOCH, Place

pytestmark = pytest.mark.anyio


def _next(folder: Path) -> Path:
    """Where the migration after the last one would stand."""
    return folder / f"{len(list(folder.glob('*.sql'))) + 1:04}_more.sql"


class Kept:
    """The passwords of the roles, as one home keeps them."""

    def __init__(self) -> None:
        self.passwords: dict[str, str] = {}

    def is_given(self, role: str) -> bool:
        return False

    async def get(self, role: str) -> str | None:
        return self.passwords.get(role)

    def draw(self) -> str:
        return "drawn"

    async def keep(self, role: str, password: str) -> None:
        self.passwords[role] = password


@asynccontextmanager
async def _connected(way: dict[str, Any]) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    connection = await asyncpg.connect(**way)
    try:
        yield connection
    finally:
        await connection.close()


async def _until_held(lock: ServerLock, clock: ManualClock) -> None:
    while True:
        try:
            return await lock.check()
        except DatabaseUnavailable:
            clock.advance(1)
            await anyio.lowlevel.checkpoint()


async def test_any_number_may_look_at_the_lock_at_once_and_it_is_kept(place: Place) -> None:
    lock = await ServerLock.take(place.engine, SystemClock())
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(lock.check)
    await lock.check()
    with pytest.raises(StartupRefused):
        await ServerLock.take(place.engine, SystemClock())
    await lock.release()


async def test_a_lock_that_the_servers_own_lost_session_still_holds_is_waited_for(
    place: Place,
) -> None:
    clock = ManualClock()
    lock = await ServerLock.take(place.engine, clock)
    async with _connected(place.owner) as lingering:
        await lingering.execute(
            "select pg_terminate_backend(pid) from pg_locks "
            "where locktype = 'advisory' and pid <> pg_backend_pid() and database = "
            "(select oid from pg_database where datname = current_database())"
        )
        while not await lingering.fetchval("select pg_try_advisory_lock($1)", LOCK):
            pass
        async with anyio.create_task_group() as group:
            group.start_soon(lock.keep)
            lock.look()
            with anyio.fail_after(10):
                while not clock.sleeping:
                    await anyio.lowlevel.checkpoint()
            await lingering.execute("select pg_advisory_unlock($1)", LOCK)
            with anyio.fail_after(10):
                await _until_held(lock, clock)
            group.cancel_scope.cancel()
    await lock.release()


async def test_a_password_is_never_changed_while_somebody_works_with_the_role(
    place: Place, database: Database
) -> None:
    async with database.engine(), _connected(place.owner) as owner:
        with pytest.raises(StartupRefused, match="in use"):
            await ensure_roles(owner, Kept())


async def test_a_password_that_could_not_be_set_is_not_kept(place: Place) -> None:
    kept = Kept()
    async with _connected(place.owner) as owner:
        await owner.execute("create role weak login")
        try:
            await owner.execute("set session authorization weak")
            with pytest.raises(StartupRefused):
                await ensure_roles(owner, kept)
        finally:
            await owner.execute("reset session authorization")
            await owner.execute("drop role weak")
    assert kept.passwords == {}


async def test_a_schema_is_not_changed_under_a_server_that_works_on_it(
    place: Place, tmp_path: Path
) -> None:
    folder = Path(copytree(SCHEMA, tmp_path / "schema"))
    _next(folder).write_text("create table more (id integer);")
    lock = await ServerLock.take(place.engine, SystemClock())
    assert await migrate(place.owner, None, EPOCH) == 0
    with pytest.raises(StartupRefused, match="working on this database"):
        await migrate(place.owner, None, EPOCH, folder)
    await lock.release()
    assert await migrate(place.owner, None, EPOCH, folder) == 1
    await (await ServerLock.take(place.engine, SystemClock())).release()


async def test_a_function_may_change_what_it_takes_and_returns(
    place: Place, tmp_path: Path
) -> None:
    folder = Path(copytree(SCHEMA, tmp_path / "schema"))
    more = folder / "functions" / "more.sql"
    more.write_text("create or replace function more() returns integer return 1;")
    assert await migrate(place.owner, None, EPOCH, folder) == 1
    more.write_text("create or replace function more(a text) returns text return a;")
    assert await migrate(place.owner, None, EPOCH, folder) == 1
    async with _connected(place.owner) as owner:
        assert await owner.fetchval("select more('x')") == "x"
        assert await owner.fetchval("select count(*) from pg_proc where proname = 'more'") == 1


async def test_a_database_that_takes_no_changes_refuses_the_start_with_a_reason(
    place: Place,
) -> None:
    way = {**place.owner, "server_settings": {"default_transaction_read_only": "on"}}
    with pytest.raises(StartupRefused, match="brought up to date") as refused:
        await migrate(way, None, EPOCH)
    assert "own the database" in refused.value.remedy


async def test_an_owner_who_may_not_create_tables_is_told_what_to_run(place: Place) -> None:
    async with _connected(place.owner) as owner:
        await owner.execute("drop table schema_functions")
        await owner.execute("revoke create on schema public from public")
        for role in ROLES:
            assert await owner.fetchval("select 1 from pg_roles where rolname = $1", role)
    with pytest.raises(StartupRefused, match="InsufficientPrivilege") as refused:
        await migrate(place.engine, None, EPOCH)
    assert "alter database" in refused.value.remedy


async def test_a_migration_by_an_owner_who_is_no_superuser_is_whole(
    place: Place, tmp_path: Path
) -> None:
    """As on a server that is not ours: the owner has no rights but to make roles and tables."""
    owner, database = "plain_owner", place.owner["database"] + "_plain"
    async with _connected({**place.owner, "database": "postgres"}) as admin:
        await admin.execute(f"create role {owner} login createrole")
        await admin.execute(f"create database {database} owner {owner}")
    try:
        way = {
            **place.owner, "database": database,
            "server_settings": {"role": owner},
        }  # fmt: skip
        with pytest.raises(StartupRefused) as refused:
            await migrate(way, None, EPOCH)
        assert "create extension vector;" in refused.value.remedy
        async with _connected({**place.owner, "database": database}) as admin:
            await admin.execute("create extension vector")
        assert await migrate(way, None, EPOCH) > 1
        assert await migrate(way, None, EPOCH) == 0
        opened = await Database.open(
            {**place.app, "database": database}, {**place.engine, "database": database}, size=2
        )
        try:
            await prove_isolation(opened)
            folder = Path(copytree(SCHEMA, tmp_path / "schema"))
            _next(folder).write_text("update segments set title = 'all of them';")
            with pytest.raises(StartupRefused) as refused:
                await migrate(way, None, EPOCH, folder)
            assert "row-level security" in str(refused.value.__cause__)
        finally:
            await opened.aclose()
    finally:
        async with _connected({**place.owner, "database": "postgres"}) as admin:
            await admin.execute(f"drop database {database} with (force)")
            await admin.execute(f"drop role {owner}")


async def test_a_time_zone_that_the_database_does_not_know_is_refused(database: Database) -> None:
    with pytest.raises(ValidationFailed, match="no time zone 'localtime'"):
        await ensure_user(database, SystemIds().new(), "zed", "localtime", EPOCH)


async def test_a_zone_set_later_counts_from_the_next_start(database: Database) -> None:
    ids = SystemIds()
    made = await ensure_user(database, ids.new(), "ann", "UTC", EPOCH)
    moved = await ensure_user(database, ids.new(), "ann", "Europe/Vienna", EPOCH)
    assert (moved.id, moved.timezone) == (made.id, "Europe/Vienna")
    assert await get_user(database, made.id) == moved


async def test_a_name_that_no_user_can_have_is_refused_with_its_rule(database: Database) -> None:
    with pytest.raises(ValidationFailed, match="'Ada Lovelace' cannot be the name of a user"):
        await ensure_user(database, SystemIds().new(), "Ada Lovelace", "UTC", EPOCH)
