"""Bring a database to the program's schema: forward only, under a lock, checked by checksum."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import asyncpg

from mira.errors import DatabaseUnavailable, StartupRefused
from mira.store.database import Connect, is_away
from mira.store.roles import Passwords, ensure_roles
from mira.store.server_lock import LOCK as SERVER_LOCK
from mira.telemetry import logger

log = logger("migrate")

SCHEMA = Path(__file__).resolve().parents[2] / "schema"
#: Advisory lock under which one process at a time changes the schema.
_LOCK = 0x4D495241_01
_FUNCTION = re.compile(r"^create or replace function (\w+)", re.MULTILINE)
_NAME = re.compile(r"^(\d{4})_([a-z0-9_]+)\.sql$")

#: What a database answers that the program's owner may not change, or nobody at present.
_REFUSALS = (
    asyncpg.InsufficientPrivilegeError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.InsufficientResourcesError,
)

_BOOK = """
create table if not exists schema_migrations (
  serial integer primary key, name text not null, checksum text not null,
  applied_at timestamptz not null);
create table if not exists schema_functions (
  name text primary key, checksum text not null, applied_at timestamptz not null);
"""


@dataclass(frozen=True)
class Migration:
    serial: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return _checksum(self.sql)


def migrations(folder: Path = SCHEMA) -> list[Migration]:
    """The migrations in `folder`, by serial. Raises ValueError on a gap or a repeated serial."""
    found = []
    for path in sorted(folder.glob("*.sql")):
        match = _NAME.match(path.name)
        if match is None:
            raise ValueError(f"{path.name} is not named NNNN_name.sql")
        found.append(Migration(int(match[1]), match[2], path.read_text()))
    if [m.serial for m in found] != list(range(1, len(found) + 1)):
        raise ValueError("serials of migrations must run from 1 without a gap")
    return found


async def migrate(
    owner: Connect, passwords: Passwords | None, now: datetime, folder: Path = SCHEMA
) -> int:
    """Apply what is missing; return how many files were applied (0: nothing changed).

    `passwords` keeps those of the two roles where the server asks for one; None where it does not.
    Raises StartupRefused if the database is newer than the program, if an applied file has been
    changed, if a role is missing and cannot be made, if a server works on a database that would
    have to change, or if the database takes no changes; DatabaseUnavailable if there is no server.
    """
    try:
        connection = await asyncpg.connect(**owner, timeout=10)
    except Exception as error:
        if is_away(error):
            raise DatabaseUnavailable("The database cannot be reached.") from error
        if isinstance(error, asyncpg.PostgresError):
            raise StartupRefused(
                f"The database refuses the connection ({type(error).__name__}).",
                "Check user, password and database name in MIRA_DATABASE_URL.",
            ) from error
        raise
    try:
        await connection.execute("select pg_advisory_lock($1)", _LOCK)
        await ensure_roles(connection, passwords)
        return await _apply(connection, folder, now)
    except _REFUSALS as error:
        raise StartupRefused(
            f"The database cannot be brought up to date ({type(error).__name__}).",
            "The user in MIRA_DATABASE_URL must own the database (as a superuser: alter database "
            "<name> owner to <user>), and the server must accept changes and have room for them.",
        ) from error
    except Exception as error:
        if is_away(error):
            raise DatabaseUnavailable("The database went away.") from error
        raise
    finally:
        await connection.close(timeout=5)


async def _apply(
    connection: asyncpg.Connection[asyncpg.Record], folder: Path, now: datetime
) -> int:
    await connection.execute("set client_min_messages = warning")
    await connection.execute(_BOOK)
    known = {m.serial: m for m in migrations(folder)}
    done = {row["serial"]: row for row in await connection.fetch("select * from schema_migrations")}
    newest = max(done, default=0)
    if newest > len(known):
        raise StartupRefused(
            f"The database is newer than this program (schema {newest}, program {len(known)}).",
            "Update the program, or restore a backup made with this version.",
        )
    for serial, row in done.items():
        if row["checksum"] != known[serial].checksum:
            raise StartupRefused(
                f"Migration {serial:04d} was changed after it had been applied.",
                "Restore the file as it was released; write a new migration for a change.",
            )
    missing = [known[serial] for serial in sorted(known.keys() - done.keys())]
    functions = await _changed_functions(connection, folder)
    if not (missing or functions):
        return 0
    if not await connection.fetchval("select pg_try_advisory_lock($1)", SERVER_LOCK):
        raise StartupRefused(
            "A MIRA server is working on this database, which would have to be changed first.",
            "Stop that server, then start this one.",
        )
    await _ensure_vectors(connection)
    await _change(connection, missing, functions, now)
    # By word, since the server would notice the end of this session a little later.
    await connection.execute("select pg_advisory_unlock($1)", SERVER_LOCK)
    return len(missing) + len(functions)


async def _ensure_vectors(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """See that the database has pgvector. Raises StartupRefused with what to do."""
    try:
        await connection.execute("create extension if not exists vector")
    except asyncpg.InsufficientPrivilegeError as error:
        raise StartupRefused(
            "The database lacks the extension pgvector, and its owner may not add it.",
            "As a superuser, in that database, run once: create extension vector;",
        ) from error
    except (asyncpg.FeatureNotSupportedError, asyncpg.UndefinedFileError) as error:
        raise StartupRefused(
            "The database server does not have pgvector (0.7 or newer is needed).",
            "Install it on that server (Debian: apt-get install postgresql-18-pgvector).",
        ) from error


async def _changed_functions(
    connection: asyncpg.Connection[asyncpg.Record], folder: Path
) -> list[Path]:
    done = {
        row["name"]: row["checksum"]
        for row in await connection.fetch("select name, checksum from schema_functions")
    }
    found = sorted((folder / "functions").glob("*.sql"))
    return [path for path in found if done.get(path.name) != _checksum(path.read_text())]


async def _change(
    connection: asyncpg.Connection[asyncpg.Record],
    missing: list[Migration],
    functions: list[Path],
    now: datetime,
) -> None:
    for step in missing:
        async with connection.transaction():
            # Row-level security binds the owner too, unless it is a superuser: what it would make
            # a migration skip without a word is an error.
            await connection.execute("set local row_security = off")
            await connection.execute(step.sql)
            await connection.execute(
                "insert into schema_migrations values ($1, $2, $3, $4)",
                step.serial, step.name, step.checksum, now,
            )  # fmt: skip
        log.info("migration_applied", serial=step.serial, name=step.name)
    for path in functions:
        sql = path.read_text()
        async with connection.transaction():
            await _drop_earlier(connection, sql)
            await connection.execute(sql)
            await connection.execute(
                "insert into schema_functions values ($1, $2, $3) on conflict (name) "
                "do update set checksum = excluded.checksum, applied_at = excluded.applied_at",
                path.name, _checksum(sql), now,
            )  # fmt: skip
        log.info("functions_applied", name=path.name)


async def _drop_earlier(connection: asyncpg.Connection[asyncpg.Record], sql: str) -> None:
    """Replacing a function can change neither what it takes nor what it returns: make room."""
    standing = await connection.fetch(
        "select oid::regprocedure::text as signature from pg_proc "
        "where pronamespace = 'public'::regnamespace and proname = any($1)",
        _FUNCTION.findall(sql),
    )
    for row in standing:
        await connection.execute(f"drop function {row['signature']}")


def _checksum(sql: str) -> str:
    return hashlib.sha256(sql.encode()).hexdigest()
