"""Messages of the history as the search knows them: numbered, so that neighbours lie side by side.

Two marks on the conversation say how far it has been taken in: `indexed_seq` for words and
`encoded_seq` for vectors. Each is moved by the transaction that does the work up to it, and only if
nobody has moved it meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from mira.messages.content import Role, decode_blocks, plain_text
from mira.store.database import Tx


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """How the two sides are called, and the user's time zone."""

    user: str
    assistant: str
    timezone: str

    def of(self, role: Role) -> str:
        return self.assistant if role is Role.ASSISTANT else self.user


class Unindexed(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is to be found, with its turn."""

    message_id: UUID
    segment_id: UUID | None
    turn_seq: int
    role: Role
    words: str
    said_at: datetime


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """A message that can be found."""

    doc: int
    message_id: UUID
    segment_id: UUID | None
    turn_seq: int
    role: Role
    words: str
    said_at: datetime


class NewPassage(msgspec.Struct, frozen=True, kw_only=True):
    """A passage to be stored. `length` counts its terms."""

    doc: int
    message_id: UUID
    segment_id: UUID | None
    turn_seq: int
    role: Role
    said_at: datetime
    length: int
    asks: bool
    #: Whether it says when something was, and whether how many.
    timed: bool
    counted: bool


class Marks(msgspec.Struct, frozen=True, kw_only=True):
    """How far words and vectors of the history have been taken in, as numbers of turns."""

    indexed: int
    encoded: int


_FINAL = "('complete', 'cancelled', 'interrupted', 'failed')"

# Turns in their order, up to the first that has not ended: what comes after it has to wait, since
# neighbours are numbered side by side.
_NEXT = f"""
with ended as materialized (
  select t.id, t.seq, t.attempt, t.segment_id, t.state from turns t
  where t.user_id = $1 and t.seq > $2 order by t.seq limit $3),
taken as materialized (
  select * from ended e where not exists (
    select from ended o where o.seq <= e.seq and o.state not in {_FINAL}))
select e.seq, e.segment_id, m.id, m.role, m.content, m.created_at
from taken e left join messages m on m.user_id = $1 and m.turn_seq = e.seq
  and m.role in ('user', 'assistant') and (m.attempt = 0 or m.attempt = e.attempt)
order by e.seq, m.position
"""  # noqa: S608

_PASSAGES = """
select p.doc, p.message_id, p.segment_id, p.turn_seq, p.role, p.said_at, m.content
from passages p join messages m on m.id = p.message_id
where p.user_id = $1 and
"""


async def names(tx: Tx, user_id: UUID) -> Names:
    """How the two sides of a conversation are called."""
    row = await tx.row(
        "select coalesce(display_name, name) as called, assistant_name, timezone from users "
        "where id = $1",
        user_id,
    )
    assert row is not None
    return Names(user=row["called"], assistant=row["assistant_name"], timezone=row["timezone"])


async def marks(tx: Tx, user_id: UUID) -> Marks:
    """How far the history has been taken in."""
    row = await tx.row(
        "select indexed_seq, encoded_seq from conversations where user_id = $1", user_id
    )
    return Marks(indexed=row["indexed_seq"], encoded=row["encoded_seq"]) if row else _NOTHING


_NOTHING = Marks(indexed=0, encoded=0)


async def next_messages(
    tx: Tx, user_id: UUID, after: int, turns: int
) -> tuple[list[Unindexed], int]:
    """The messages of at most `turns` ended turns after number `after`, in order, without those
    that say nothing in words; and the last of these turns (`after` if there is none)."""
    rows = await tx.fetch(_NEXT, user_id, after, turns)
    found = []
    for row in rows:
        words = plain_text(decode_blocks(row["content"])).strip() if row["id"] else ""
        if words:
            found.append(
                Unindexed(
                    message_id=row["id"], segment_id=row["segment_id"], turn_seq=row["seq"],
                    role=Role(row["role"]), words=words, said_at=row["created_at"],
                )
            )  # fmt: skip
    return found, rows[-1]["seq"] if rows else after


async def of_turns(tx: Tx, user_id: UUID, first: int, last: int) -> list[Passage]:
    """The passages of the turns from `first` to `last`, in order."""
    rows = await tx.fetch(
        _PASSAGES + "p.turn_seq between $2 and $3 order by p.doc", user_id, first, last
    )
    return [_passage(row) for row in rows]


async def between(tx: Tx, user_id: UUID, first: int, last: int) -> list[Passage]:
    """The passages numbered `first` to `last`."""
    rows = await tx.fetch(
        _PASSAGES + "p.doc between $2 and $3 order by p.doc", user_id, first, last
    )
    return [_passage(row) for row in rows]


async def newest(tx: Tx, user_id: UUID) -> tuple[int, UUID | None]:
    """Number and segment of the last passage; (0, None) if there is none."""
    row = await tx.row(
        "select doc, segment_id from passages where user_id = $1 order by doc desc limit 1", user_id
    )
    return (row["doc"], row["segment_id"]) if row else (0, None)


async def add(tx: Tx, user_id: UUID, passages: Sequence[NewPassage]) -> None:
    """Store passages. Their words go into the postings, their vectors follow."""
    await tx.many(
        "insert into passages (user_id, doc, message_id, segment_id, turn_seq, role, said_at, "
        "length, asks, timed, counted) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        [
            (user_id, p.doc, p.message_id, p.segment_id, p.turn_seq, str(p.role), p.said_at,
             p.length, p.asks, p.timed, p.counted)
            for p in passages
        ],
    )  # fmt: skip


async def remove(tx: Tx, user_id: UUID, docs: Sequence[int]) -> None:
    """Take passages out. Their postings and vectors are the caller's to remove."""
    await tx.execute(
        "delete from passages where user_id = $1 and doc = any($2)", user_id, list(docs)
    )


async def lock(tx: Tx, user_id: UUID) -> None:
    """Keep every other writer of this user's passages out until the transaction ends."""
    await tx.execute(
        "select pg_advisory_xact_lock(hashtextextended('passages' || $1, 0))", str(user_id)
    )


async def move_mark(tx: Tx, user_id: UUID, name: str, before: int, after: int) -> bool:
    """Move the mark `indexed` or `encoded`; False, and nothing, if it is no longer at `before`."""
    assert name in ("indexed", "encoded")
    moved = await tx.execute(
        f"update conversations set {name}_seq = $3 where user_id = $1 and {name}_seq = $2",  # noqa: S608
        user_id, before, after,
    )  # fmt: skip
    return moved == 1


def _passage(row: object) -> Passage:
    fields = dict(row)  # type: ignore[call-overload]
    fields["words"] = plain_text(decode_blocks(fields.pop("content"))).strip()
    fields["role"] = Role(fields["role"])
    return Passage(**fields)
