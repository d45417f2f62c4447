"""Summaries: what segments were, in the first person."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import msgspec

from mira.store.database import Tx


class SummaryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A summary with the times of its segment. `complexity` is 0.5, 1, 2 or 3; `drift` the share
    of its sentences that its segment does not bear out; `model` is None where none has written it.
    """

    segment_id: UUID
    title: str
    trace: str
    precis: str
    complexity: float
    parts: int
    drift: float
    provider: str | None
    model: str | None
    made_at: datetime
    rechecked_at: datetime | None
    started_at: datetime
    ended_at: datetime


_SELECT = """
select s.segment_id, s.title, s.trace, s.precis, s.complexity, s.parts, s.drift, s.provider,
  s.model, s.made_at, s.rechecked_at, g.opened_at as started_at, g.last_message_at as ended_at
from segments g join summaries s on s.segment_id = g.id
where g.user_id = $1
"""


async def newest(
    tx: Tx, user_id: UUID, *, limit: int, before: datetime | None = None
) -> list[SummaryRecord]:
    """The summaries of at most `limit` segments (that opened before a time), newest first."""
    rows = await tx.fetch(
        _SELECT + "and ($2::timestamptz is null or g.opened_at < $2) "
        "order by g.opened_at desc, g.id desc limit $3",
        user_id, before, limit,
    )  # fmt: skip
    return [SummaryRecord(**dict(row)) for row in rows]


async def of_segments(tx: Tx, user_id: UUID, ids: list[UUID]) -> dict[UUID, SummaryRecord]:
    """Those of these segments that have one."""
    rows = await tx.fetch(_SELECT + "and g.id = any($2)", user_id, ids)
    return {row["segment_id"]: SummaryRecord(**dict(row)) for row in rows}
