"""The schema comes up once, goes only forward, and isolates users, or the start is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import asyncpg
import pytest

from mira.errors import StartupRefused
from mira.store import canary
from mira.store.canary import prove_isolation
from mira.store.database import Database
from mira.store.migrate import SCHEMA, migrate, migrations
from mira.store.users import User
from tests.conftest import EPOCH, Place
from tests.integration.test_store_turns import accept

pytestmark = pytest.mark.anyio


async def _as_owner(place: Place, sql: str) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(**place.owner)
    try:
        rows: list[asyncpg.Record] = await connection.fetch(sql)
        return rows
    finally:
        await connection.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the schema that a test may change."""
    return Path(shutil.copytree(SCHEMA, tmp_path / "schema"))


async def test_upgrading_twice_changes_nothing(
    place: Place, database: Database, user: User
) -> None:
    await accept(database, user, "kept")
    before = await _as_owner(place, "select * from schema_migrations order by serial")
    assert await migrate(place.owner, None, EPOCH) == 0
    assert await _as_owner(place, "select * from schema_migrations order by serial") == before
    assert [r["n"] for r in await _as_owner(place, "select count(*) as n from messages")] == [1]


async def test_a_new_migration_is_applied_to_a_database_with_data_in_it(
    place: Place, database: Database, user: User, folder: Path
) -> None:
    await accept(database, user, "kept")
    number = len(migrations()) + 1
    (folder / f"{number:04d}_more.sql").write_text("alter table turns add column note text")
    assert await migrate(place.owner, None, EPOCH, folder) == 1
    assert await migrate(place.owner, None, EPOCH, folder) == 0
    rows = await _as_owner(place, "select note, state from turns")
    assert [tuple(r) for r in rows] == [(None, "received")]


async def test_a_migration_that_fails_leaves_nothing_of_itself(place: Place, folder: Path) -> None:
    number = len(migrations()) + 1
    (folder / f"{number:04d}_half.sql").write_text("create table half (n int); select 1 / 0;")
    with pytest.raises(asyncpg.DivisionByZeroError):
        await migrate(place.owner, None, EPOCH, folder)
    assert await _as_owner(place, "select 1 from pg_class where relname = 'half'") == []
    assert await migrate(place.owner, None, EPOCH) == 0


async def test_a_database_newer_than_the_program_is_refused(place: Place) -> None:
    await _as_owner(
        place, "insert into schema_migrations values (99, 'future', 'x', now()) returning 1"
    )
    with pytest.raises(StartupRefused, match="newer than this program"):
        await migrate(place.owner, None, EPOCH)


async def test_a_migration_that_was_changed_afterwards_is_refused(
    place: Place, folder: Path
) -> None:
    [first] = list(folder.glob("0001_*.sql"))
    first.write_text(first.read_text() + "-- changed\n")
    with pytest.raises(StartupRefused, match="was changed after it had been applied"):
        await migrate(place.owner, None, EPOCH, folder)


async def test_functions_are_applied_again_only_when_they_change(
    place: Place, folder: Path
) -> None:
    path = folder / "functions" / "more.sql"
    path.write_text("create or replace function one() returns int language sql return 1;")
    assert await migrate(place.owner, None, EPOCH, folder) == 1
    assert await migrate(place.owner, None, EPOCH, folder) == 0
    path.write_text("create or replace function one() returns int language sql return 2;")
    assert await migrate(place.owner, None, EPOCH, folder) == 1
    assert [r[0] for r in await _as_owner(place, "select one()")] == [2]


@pytest.mark.parametrize("name", ["2_short.sql", "0099_gap.sql", "0003_Upper.sql"])
def test_files_that_do_not_follow_the_numbering_are_refused(folder: Path, name: str) -> None:
    (folder / name).write_text("select 1")
    with pytest.raises(ValueError, match=r"named|serials"):
        migrations(folder)


async def test_the_canary_lives_where_users_are_isolated(database: Database) -> None:
    await prove_isolation(database)


@pytest.mark.parametrize(
    ("sabotage", "finding"),
    [
        ("alter table messages disable row level security", "messages"),
        ("alter table messages no force row level security", "messages"),
        ("drop policy own_rows on turns", "turns"),
        ("create policy wide on segments to mira_app using (true)", "rows show without a user"),
        ("create policy wide on users for select to mira_app using (app_user() is not null)",
         "another's account"),
        ("grant select on messages to mira_engine", "the engine's role can read messages"),
        ("create table diary (user_id uuid, words text); grant select on diary to mira_app",
         "diary"),
        ("create or replace function app_user() returns uuid language sql stable "
         f"return '{canary.A}'::uuid", "rows show without a user"),
    ],
)  # fmt: skip
async def test_the_canary_refuses_the_start_where_isolation_has_a_hole(
    place: Place, database: Database, sabotage: str, finding: str
) -> None:
    connection = await asyncpg.connect(**place.owner)
    try:
        await connection.execute(sabotage)
    finally:
        await connection.close()
    with pytest.raises(StartupRefused, match=finding):
        await prove_isolation(database)
