"""Summaries: what segments were, in the first person."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from mira.store.database import Tx
from mira.store.spaces import literal


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


class NewSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A summary to be written; its vector, if it has one, is of the model `vector_model`."""

    segment_id: UUID
    title: str
    trace: str
    precis: str
    complexity: float
    parts: int
    drift: float
    provider: str | None
    model: str | None
    vector: Sequence[float] | None = None
    vector_model: str | None = None


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


async def write(tx: Tx, user_id: UUID, new: NewSummary, now: datetime) -> bool:
    """Write the summary of a segment, and its title there. False if there is one already: then
    nothing has changed, unless that one has no model and this one has."""
    touched = await tx.execute(
        "insert into summaries as old (segment_id, user_id, title, trace, precis, complexity, "
        "parts, drift, provider, model, made_at, vector, vector_model) "
        "values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::text::vector, $13) "
        "on conflict (segment_id) do update set title = excluded.title, trace = excluded.trace, "
        "precis = excluded.precis, complexity = excluded.complexity, parts = excluded.parts, "
        "drift = excluded.drift, provider = excluded.provider, model = excluded.model, "
        "made_at = excluded.made_at, rechecked_at = null, vector = excluded.vector, "
        "vector_model = excluded.vector_model "
        "where old.user_id = $2 and old.model is null and excluded.model is not null",
        new.segment_id, user_id, new.title, new.trace, new.precis, new.complexity, new.parts,
        new.drift, new.provider, new.model, now,
        None if new.vector is None else literal(new.vector),
        None if new.vector is None else new.vector_model,
    )  # fmt: skip
    if touched != 1:
        return False
    await tx.execute(
        "update segments set title = $3 where user_id = $1 and id = $2",
        user_id, new.segment_id, new.title,
    )  # fmt: skip
    return True


async def unfinished(tx: Tx, user_id: UUID, *, able: bool, limit: int) -> list[UUID]:
    """Segments that have ended and of which the door has not heard that there is a summary, oldest
    first; with `able`, those too whose summary no model has written."""
    rows = await tx.fetch(
        "select g.id from segments g left join summaries s on s.segment_id = g.id "
        "where g.user_id = $1 and (g.state = 'collapsing' "
        "or ($2 and s.segment_id is not null and s.model is null)) "
        "order by g.opened_at, g.id limit $3",
        user_id, able, limit,
    )  # fmt: skip
    return [row["id"] for row in rows]
