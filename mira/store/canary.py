"""Proof at start that one user cannot see another. Anything unexpected refuses the start."""

from __future__ import annotations

from uuid import UUID

import asyncpg

from mira.errors import StartupRefused
from mira.store.database import Database, Tx

A = UUID("00000000-0000-0000-0000-00000000000a")
B = UUID("00000000-0000-0000-0000-00000000000b")

#: Tables that mira_app may touch and that belong to users, without forced security or a policy.
_OPEN_TABLES = """
select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'public' and c.relkind in ('r', 'p')
  and (has_table_privilege('mira_app', c.oid, 'select, insert, update, delete, truncate')
       or has_any_column_privilege('mira_app', c.oid, 'select, insert, update'))
  and exists (select 1 from pg_attribute a where a.attrelid = c.oid and not a.attisdropped
                and (a.attname = 'user_id' or (c.relname = 'users' and a.attname = 'id')))
  and not (c.relrowsecurity and c.relforcerowsecurity
           and exists (select 1 from pg_policy p where p.polrelid = c.oid))
"""
#: Tables of conversations that the engine's role could read.
_ENGINE_SEES = """
select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'public' and c.relkind in ('r', 'p')
  and has_table_privilege('mira_engine', c.oid, 'select')
  and c.relname not in ('users', 'house', 'api_keys', 'signin_links', 'sessions', 'outbox',
                        'dead_letters')
"""
_STRONG_ROLES = """
select rolname from pg_roles where rolname in ('mira_app', 'mira_engine')
  and (rolsuper or rolbypassrls or rolcreaterole)
"""


async def prove_isolation(database: Database) -> None:
    """Raise StartupRefused unless row-level security holds in both directions."""
    async with database.app_without_user() as tx:
        strong = [r["rolname"] for r in await tx.fetch(_STRONG_ROLES)]
        _must(not strong, f"role {', '.join(strong)} may pass row-level security")
        exposed = [r["relname"] for r in await tx.fetch(_OPEN_TABLES)]
        _must(not exposed, f"no forced row-level security on {', '.join(exposed)}")
        seen = [r["relname"] for r in await tx.fetch(_ENGINE_SEES)]
        _must(not seen, f"the engine's role can read {', '.join(seen)}")
        _must(await tx.value("select count(*) from segments") == 0, "rows show without a user")
    for one, other in ((A, B), (B, A)):
        async with database.user(one) as tx:
            owners = {r["user_id"] for r in await tx.fetch("select user_id from segments")}
            _must(owners == {one}, "a user does not see exactly their own rows")
            _must(
                await tx.value("select count(*) from users") == 1, "a user sees another's account"
            )
            touched = await tx.execute(
                "update segments set title = 'seen' where user_id = $1", other
            )
            _must(touched == 0, "a user can change another's rows")
        _must(await _insert_is_refused(database, one, other), "a user can write another's rows")


async def _insert_is_refused(database: Database, one: UUID, other: UUID) -> bool:
    try:
        async with database.user(one) as tx:
            await _insert(tx, other)
            raise _Undo
    except asyncpg.InsufficientPrivilegeError:
        return True
    except _Undo:
        return False


class _Undo(Exception):
    pass


async def _insert(tx: Tx, owner: UUID) -> None:
    await tx.execute(
        "insert into segments (id, user_id, state, opened_at, last_message_at) values "
        "(gen_random_uuid(), $1, 'collapsed', 'epoch', 'epoch')",
        owner,
    )


def _must(holds: bool, what: str) -> None:
    if not holds:
        raise StartupRefused(
            f"Users are not isolated from each other in the database: {what}.",
            "Do not serve from this database. Compare its roles, grants and policies with schema/.",
        )
