"""Users and their one conversation."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import asyncpg
import msgspec

from mira.errors import NotFound, ValidationFailed
from mira.store.database import Database


class User(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    name: str
    timezone: str


async def find_user(database: Database, name: str) -> User | None:
    """The user of this name, if there is one."""
    async with database.engine() as tx:
        row = await tx.row("select id, name, timezone from users where name = $1", name)
    return User(**dict(row)) if row else None


async def get_user(database: Database, user_id: UUID) -> User:
    """Raises NotFound."""
    async with database.engine() as tx:
        row = await tx.row("select id, name, timezone from users where id = $1", user_id)
    if row is None:
        raise NotFound("There is no such user.")
    return User(**dict(row))


async def ensure_user(
    database: Database, user_id: UUID, name: str, timezone: str, now: datetime
) -> User:
    """The user of this name with their conversation; made, with `user_id`, if absent.

    The zone counts from now on for a user who is there, too; days that were counted stay counted.
    Idempotent: a start that died between the two steps is completed by the next.
    Raises ValidationFailed for a name or a time zone that does not exist.
    """
    check_timezone(timezone)
    async with database.engine() as tx:
        try:
            # The day of a message is found by the database, which has zones of its own.
            await tx.value("select $1::timestamptz at time zone $2", now, timezone)
        except asyncpg.InvalidParameterValueError:
            raise ValidationFailed(f"The database knows no time zone {timezone!r}.") from None
        try:
            row = await tx.row(
                "insert into users (id, name, timezone, created_at) values ($1, $2, $3, $4) "
                "on conflict (name) do update set timezone = excluded.timezone "
                "returning id, name, timezone",
                user_id, name, timezone, now,
            )  # fmt: skip
        except asyncpg.CheckViolationError:
            raise ValidationFailed(
                f"{name!r} cannot be the name of a user: it takes small letters a to z, digits, "
                "dots, dashes and underscores, beginning with a letter or digit, 64 at most."
            ) from None
    if row is None:
        raise NotFound("The user was removed while being made.")
    user = User(**dict(row))
    async with database.user(user.id) as tx:
        await tx.execute(
            "insert into conversations (user_id, id, created_at) values ($1, $1, $2) "
            "on conflict (user_id) do nothing",
            user.id, now,
        )  # fmt: skip
    return user


def check_timezone(name: str) -> ZoneInfo:
    """The zone of this IANA name. Raises ValidationFailed."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValidationFailed(
            f"There is no time zone {name!r}; use a name such as Europe/Vienna."
        ) from None
