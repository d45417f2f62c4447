"""Segments as they stand."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from mira.errors import NotFound, StaleEpoch
from mira.messages.segment import SegmentState
from mira.store.database import Tx
from mira.store.turns import Fence


class SegmentRecord(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    state: SegmentState
    opened_at: datetime
    last_message_at: datetime
    collapsed_at: datetime | None
    title: str | None
    tools: tuple[str, ...] = ()


class CollapseBegun(msgspec.Struct, frozen=True, kw_only=True):
    """What came of trying to end a segment. `early`: silence can end it at `due`, not before."""

    outcome: Literal["begun", "early", "none"]
    segment_id: UUID | None
    due: datetime | None


_SELECT = (
    "select id, state, opened_at, last_message_at, collapsed_at, title, tools from segments "
    "where user_id = $1 "
)


async def page(
    tx: Tx, user_id: UUID, *, before: tuple[datetime, UUID] | None, limit: int
) -> list[SegmentRecord]:
    """At most `limit` segments opened before (time, id), newest first."""
    opened_at, segment_id = before or (None, None)
    rows = await tx.fetch(
        _SELECT + "and ($2::timestamptz is null or (opened_at, id) < ($2, $3)) "
        "order by opened_at desc, id desc limit $4",
        user_id, opened_at, segment_id, limit,
    )  # fmt: skip
    return [_segment(row) for row in rows]


async def get(tx: Tx, user_id: UUID, segment_id: UUID) -> SegmentRecord:
    """Raises NotFound."""
    row = await tx.row(_SELECT + "and id = $2", user_id, segment_id)
    if row is None:
        raise NotFound("There is no such segment.")
    return _segment(row)


async def exists(tx: Tx, user_id: UUID, segment_id: UUID) -> bool:
    """Whether there is such a segment."""
    found: bool = await tx.value(
        "select exists (select from segments where user_id = $1 and id = $2)", user_id, segment_id
    )
    return found


async def open_one(tx: Tx, user_id: UUID) -> SegmentRecord | None:
    """The segment that takes turns, active or paused."""
    row = await tx.row(_SELECT + "and state in ('active', 'paused')", user_id)
    return None if row is None else _segment(row)


async def overdue(
    tx: Tx, user_id: UUID, *, before: datetime, limit: int
) -> list[tuple[UUID, datetime]]:
    """Segments that ended before a time and have not collapsed since, with when they ended, the
    oldest first."""
    rows = await tx.fetch(
        "select id, coalesce(collapsing_at, last_message_at) as ended_at from segments "
        "where user_id = $1 and state = 'collapsing' "
        "and coalesce(collapsing_at, last_message_at) < $2 order by 2, 1 limit $3",
        user_id, before, limit,
    )  # fmt: skip
    return [(row["id"], row["ended_at"]) for row in rows]


async def begin_collapse(
    tx: Tx, user_id: UUID, fence: Fence, segment_id: UUID | None, at: datetime, idle: float, *,
    forced: bool = False,
) -> CollapseBegun:  # fmt: skip
    """End a segment after `idle` seconds of silence, or at once if `forced` (None: the open one).

    The next turn opens another one. Raises StaleEpoch.
    """
    row = await tx.row(
        "select * from begin_collapse($1, $2, $3, $4, $5, $6, $7)",
        user_id, fence.epoch, fence.generation, segment_id, at, idle, forced,
    )  # fmt: skip
    assert row is not None
    if row["outcome"] == "stale":
        raise _stale()
    return CollapseBegun(outcome=row["outcome"], segment_id=row["segment"], due=row["due"])


async def end_collapse(tx: Tx, user_id: UUID, fence: Fence, segment_id: UUID, at: datetime) -> bool:
    """All that a segment leaves is there. False if it had ended before. Raises StaleEpoch."""
    ended: bool | None = await tx.value(
        "select end_collapse($1, $2, $3, $4, $5)",
        user_id, fence.epoch, fence.generation, segment_id, at,
    )  # fmt: skip
    if ended is None:
        raise _stale()
    return ended


async def keep_watch(tx: Tx, user_id: UUID, at: datetime, idle: float) -> None:
    """Set the timer of the open segment if it should have one and has none."""
    await tx.execute("select keep_watch($1, $2, $3)", user_id, at, idle)


async def pause(tx: Tx, user_id: UUID, fence: Fence) -> UUID | None:
    """Let no silence end the open segment; None if none is open. Raises StaleEpoch."""
    row = await tx.row(
        "select * from pause_segment($1, $2, $3)", user_id, fence.epoch, fence.generation
    )
    return _steered(row)


async def resume(tx: Tx, user_id: UUID, fence: Fence, at: datetime, idle: float) -> UUID | None:
    """End the pause of the open segment; None if none is open. Raises StaleEpoch."""
    row = await tx.row(
        "select * from resume_segment($1, $2, $3, $4, $5)",
        user_id, fence.epoch, fence.generation, at, idle,
    )  # fmt: skip
    return _steered(row)


def _steered(row: object) -> UUID | None:
    fields = dict(row)  # type: ignore[call-overload]
    if fields["stale"]:
        raise _stale()
    segment_id: UUID | None = fields["segment"]
    return segment_id


def _stale() -> StaleEpoch:
    return StaleEpoch("Another activation has taken over this conversation.")


def _segment(row: object) -> SegmentRecord:
    fields = dict(row)  # type: ignore[call-overload]
    fields["state"] = SegmentState(fields["state"])
    fields["tools"] = tuple(fields["tools"])
    return SegmentRecord(**fields)
