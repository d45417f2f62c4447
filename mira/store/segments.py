"""Segments as they stand."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import msgspec

from mira.errors import NotFound
from mira.messages.segment import SegmentState
from mira.store.database import Tx


class SegmentRecord(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    state: SegmentState
    opened_at: datetime
    last_message_at: datetime
    collapsed_at: datetime | None
    title: str | None


_SELECT = (
    "select id, state, opened_at, last_message_at, collapsed_at, title from segments "
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


def _segment(row: object) -> SegmentRecord:
    fields = dict(row)  # type: ignore[call-overload]
    fields["state"] = SegmentState(fields["state"])
    return SegmentRecord(**fields)
