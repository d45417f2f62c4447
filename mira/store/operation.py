"""What an operator looks at: undone work, dead letters; and the one conversation as a resource."""

from __future__ import annotations

from datetime import date, datetime
from uuid import UUID

import msgspec

from mira.errors import NotFound
from mira.store.database import Tx


class ConversationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A user's one conversation."""

    id: UUID
    created_at: datetime
    use_days: int
    last_use_date: date | None


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A durable message that was given up; `payload` is JSON text and holds ids, never words."""

    id: int
    user_id: UUID | None
    kind: str
    address: str
    lane: str
    payload: str
    attempts: int
    error: str
    created_at: datetime
    buried_at: datetime
    replayed_at: datetime | None


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """Durable messages not done yet, those of them that are due, and letters given up."""

    pending: int
    due: int
    dead: int


async def conversation(tx: Tx, user_id: UUID) -> ConversationRecord:
    """In a transaction of the user. Raises NotFound."""
    row = await tx.row(
        "select id, created_at, use_days, last_use_date from conversations where user_id = $1",
        user_id,
    )
    if row is None:
        raise NotFound("There is no such conversation.")
    return ConversationRecord(**dict(row))


async def dead_letters(
    tx: Tx, *, user_id: UUID | None, before: int | None, limit: int
) -> list[DeadLetter]:
    """At most `limit` letters with id < `before`, newest first; of all users if none is named.

    In a transaction of the engine, as all below.
    """
    rows = await tx.fetch(
        _LETTERS + "where ($1::uuid is null or user_id = $1) and ($2::bigint is null or id < $2) "
        "order by id desc limit $3",
        user_id, before, limit,
    )  # fmt: skip
    return [DeadLetter(**dict(row)) for row in rows]


async def dead_letter(tx: Tx, letter_id: int, *, user_id: UUID | None) -> DeadLetter:
    """One letter, of this user if one is named. Raises NotFound."""
    row = await tx.row(
        _LETTERS + "where id = $1 and ($2::uuid is null or user_id = $2)", letter_id, user_id
    )
    if row is None:
        raise NotFound("There is no such dead letter.")
    return DeadLetter(**dict(row))


async def work(tx: Tx, now: datetime) -> Work:
    """How much is undone."""
    row = await tx.row(
        "select count(*) as pending, count(*) filter (where due_at <= $1) as due, "
        "(select count(*) from dead_letters where replayed_at is null) as dead from outbox",
        now,
    )
    assert row is not None
    return Work(**dict(row))


_LETTERS = (
    "select id, user_id, kind, address, lane, payload::text, attempts, error, created_at, "
    "buried_at, replayed_at from dead_letters "
)
