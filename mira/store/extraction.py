"""Extraction's books: segments cut into chunks, each of which is asked for until it is done.

A chunk waits, is asked for in a batch, or is done. Done are only those whose memories were stored
by the same transaction; a segment is extracted when it has ended and all of its chunks are done.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from mira.errors import NotFound
from mira.messages.content import Role, decode_blocks
from mira.store.database import Tx
from mira.store.history import HistoryMessage


class ChunkRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A chunk as it stands. `attempts` counts what did not lead to memories, outages excepted;
    `batch_id` is the last batch that it was in."""

    id: UUID
    segment_id: UUID
    ordinal: int
    message_ids: tuple[UUID, ...]
    state: Literal["waiting", "asked", "done"]
    batch_id: UUID | None
    attempts: int
    last_error: str | None
    calls: int
    input_tokens: int
    output_tokens: int


class SegmentToExtract(msgspec.Struct, frozen=True, kw_only=True):
    """`collapsed`: nothing will be said in it any more."""

    id: UUID
    collapsed: bool
    extracted_at: datetime | None


class Who(msgspec.Struct, frozen=True, kw_only=True):
    """The user as a prompt knows them; without a name of their own they are "the user"."""

    name: str
    timezone: str


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What answers for a chunk have cost."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


_CHUNK = (
    "select id, segment_id, ordinal, message_ids, state, batch_id, attempts, last_error, calls, "
    "input_tokens, output_tokens from extraction_chunks where user_id = $1 "
)


async def segment(tx: Tx, user_id: UUID, segment_id: UUID) -> SegmentToExtract:
    """Raises NotFound."""
    row = await tx.row(
        "select id, state = 'collapsed' as collapsed, extracted_at from segments "
        "where user_id = $1 and id = $2",
        user_id, segment_id,
    )  # fmt: skip
    if row is None:
        raise NotFound("There is no such segment.")
    return SegmentToExtract(**dict(row))


async def who(tx: Tx, user_id: UUID) -> Who:
    """How the user is called, and their time zone."""
    row = await tx.row(
        "select coalesce(nullif(display_name, ''), 'the user') as name, timezone from users "
        "where id = $1",
        user_id,
    )
    assert row is not None
    return Who(**dict(row))


async def messages(tx: Tx, user_id: UUID, segment_id: UUID) -> list[HistoryMessage]:
    """What was said in a segment, in order: the user's words and the latest attempt of each turn
    that has ended."""
    rows = await tx.fetch(
        "select m.id, m.turn_id, t.request_id, m.turn_seq, m.position, m.role, m.content, m.state, "
        "m.created_at from turns t join messages m on m.turn_id = t.id "
        "and (m.attempt = 0 or m.attempt = t.attempt) "
        "where t.user_id = $1 and t.segment_id = $2 "
        "and t.state in ('complete', 'cancelled', 'interrupted', 'failed') "
        "order by m.turn_seq, m.position",
        user_id, segment_id,
    )  # fmt: skip
    return [
        HistoryMessage(
            **{
                **{k: v for k, v in dict(row).items() if k != "content"},
                "role": Role(row["role"]),
                "blocks": decode_blocks(row["content"]),
            }
        )
        for row in rows
    ]


async def documents(tx: Tx, user_id: UUID, segment_id: UUID, *, most: int) -> list[str]:
    """The first `most` characters of each document that came with a segment's messages."""
    rows = await tx.fetch(
        "select substr(f.words, 1, $3) as words from turns t join files f on f.turn_id = t.id "
        "and f.user_id = t.user_id "
        "where t.user_id = $1 and t.segment_id = $2 and f.words <> '' order by f.created_at",
        user_id, segment_id, most,
    )  # fmt: skip
    return [row["words"] for row in rows]


async def recalled(
    tx: Tx, user_id: UUID, segment_id: UUID
) -> tuple[dict[UUID, tuple[str, ...]], dict[str, str]]:
    """What was before the assistant in a segment: by turn the short ids of memories, and by short
    id their texts, of those that are still active; the latest first."""
    rows = await tx.fetch(
        "select distinct on (t.seq, m.short_id) t.id as turn_id, t.seq, m.short_id, m.text "
        "from turns t join retrieval_traces r on r.turn_id = t.id "
        "cross join lateral unnest(r.surfaced) as one(id) "
        "join memories m on m.id = one.id and m.user_id = $1 and m.status = 'active' "
        "where t.user_id = $1 and t.segment_id = $2 order by t.seq desc, m.short_id",
        user_id, segment_id,
    )  # fmt: skip
    by_turn: dict[UUID, tuple[str, ...]] = {}
    texts: dict[str, str] = {}
    for row in rows:
        by_turn[row["turn_id"]] = (*by_turn.get(row["turn_id"], ()), row["short_id"])
        texts.setdefault(row["short_id"], row["text"])
    return by_turn, texts


async def chunks(tx: Tx, user_id: UUID, segment_id: UUID) -> list[ChunkRecord]:
    """A segment's chunks in order."""
    rows = await tx.fetch(_CHUNK + "and segment_id = $2 order by ordinal", user_id, segment_id)
    return [_chunk(row) for row in rows]


async def of_batch(tx: Tx, user_id: UUID, batch_id: UUID) -> list[ChunkRecord]:
    """The chunks that are asked for in a batch, in order."""
    rows = await tx.fetch(
        _CHUNK + "and batch_id = $2 and state = 'asked' order by segment_id, ordinal",
        user_id, batch_id,
    )  # fmt: skip
    return [_chunk(row) for row in rows]


async def left_by(tx: Tx, user_id: UUID, batch_id: UUID) -> list[UUID]:
    """The segments with chunks that were last asked for in a batch, and wait again."""
    rows = await tx.fetch(
        "select distinct segment_id from extraction_chunks "
        "where user_id = $1 and batch_id = $2 and state = 'waiting' order by segment_id",
        user_id, batch_id,
    )  # fmt: skip
    return [row["segment_id"] for row in rows]


async def plan(
    tx: Tx,
    user_id: UUID,
    segment_id: UUID,
    new: Sequence[tuple[UUID, Sequence[UUID]]],
    now: datetime,
) -> None:
    """Write down further chunks, as (id, message ids), behind those that are there.

    For one caller at a time: the second of two that plan at once fails as a whole.
    """
    await tx.many(
        "insert into extraction_chunks (id, user_id, segment_id, ordinal, message_ids, created_at) "
        "select $1::uuid, $2::uuid, $3::uuid, coalesce(max(ordinal) + 1, 0), $4::uuid[], "
        "$5::timestamptz from extraction_chunks "
        "where user_id = $2 and segment_id = $3",
        [(chunk_id, user_id, segment_id, list(ids), now) for chunk_id, ids in new],
    )


async def asked(tx: Tx, user_id: UUID, chunk_ids: Sequence[UUID], batch_id: UUID) -> None:
    """These are asked for in a batch from now on."""
    await tx.execute(
        "update extraction_chunks set state = 'asked', batch_id = $3 "
        "where user_id = $1 and id = any($2) and state = 'waiting'",
        user_id, list(chunk_ids), batch_id,
    )  # fmt: skip


async def done(
    tx: Tx, user_id: UUID, chunk_id: UUID, spent: Spent, now: datetime, note: str | None
) -> bool:
    """This transaction stores what a chunk tells. False if another has done so: then nothing may
    be stored. `note` says what was not taken, if anything."""
    touched = await tx.execute(
        "update extraction_chunks set state = 'done', done_at = $7, "
        "last_error = $6, calls = calls + $3, input_tokens = input_tokens + $4, "
        "output_tokens = output_tokens + $5 where user_id = $1 and id = $2 and state <> 'done'",
        user_id, chunk_id, spent.calls, spent.input_tokens, spent.output_tokens, note, now,
    )  # fmt: skip
    return touched == 1


async def failed(
    tx: Tx, user_id: UUID, chunk_id: UUID, spent: Spent, error: str, *, attempt: bool
) -> None:
    """A chunk waits again, with the reason; `attempt`: it is one more that led to nothing."""
    await tx.execute(
        "update extraction_chunks set state = 'waiting', last_error = $6, "
        "attempts = attempts + $7, calls = calls + $3, input_tokens = input_tokens + $4, "
        "output_tokens = output_tokens + $5 where user_id = $1 and id = $2 and state <> 'done'",
        user_id, chunk_id, spent.calls, spent.input_tokens, spent.output_tokens, error[:500],
        int(attempt),
    )  # fmt: skip


async def finish(tx: Tx, user_id: UUID, segment_id: UUID, now: datetime) -> bool:
    """Mark a segment that has ended as extracted, if nothing of it is left to be done; whether
    nothing is. Call it in the transaction that ends the last chunk."""
    left = await tx.value(
        "select exists (select from extraction_chunks "
        "where user_id = $1 and segment_id = $2 and state <> 'done')",
        user_id, segment_id,
    )  # fmt: skip
    if left:
        return False
    await tx.execute(
        "update segments set extracted_at = $3 where user_id = $1 and id = $2 "
        "and state = 'collapsed' and extracted_at is null",
        user_id, segment_id, now,
    )  # fmt: skip
    return True


async def unextracted(tx: Tx, user_id: UUID, *, below: int, limit: int) -> list[UUID]:
    """Segments that have ended and are not extracted, oldest first, without those of which a chunk
    has had `below` attempts."""
    rows = await tx.fetch(
        "select s.id from segments s where s.user_id = $1 and s.state = 'collapsed' "
        "and s.extracted_at is null and not exists (select from extraction_chunks c "
        "  where c.user_id = $1 and c.segment_id = s.id and c.state <> 'done' "
        "  and c.attempts >= $2) "
        "order by s.collapsed_at, s.id limit $3",
        user_id, below, limit,
    )  # fmt: skip
    return [row["id"] for row in rows]


def _chunk(row: object) -> ChunkRecord:
    fields = dict(row)  # type: ignore[call-overload]
    fields["message_ids"] = tuple(fields["message_ids"])
    return ChunkRecord(**fields)
