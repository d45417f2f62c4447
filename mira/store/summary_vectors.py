"""The vectors of summaries: older ones that are like a new one, and those that have none yet."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import msgspec

from mira.store.database import Tx
from mira.store.spaces import literal


class Nearby(msgspec.Struct, frozen=True, kw_only=True):
    """An older summary that is like another, and its cosine."""

    segment_id: UUID
    cosine: float
    text: str


class Unencoded(msgspec.Struct, frozen=True, kw_only=True):
    """A summary whose vector is missing, or of another model."""

    segment_id: UUID
    title: str
    trace: str
    precis: str


async def nearest(
    tx: Tx,
    user_id: UUID,
    segment_id: UUID,
    vector: Sequence[float],
    model: str,
    *,
    without: Sequence[UUID],
    limit: int,
) -> list[Nearby]:
    """Those of older segments that are most like `vector`, nearest first; `without` these."""
    # Materialised: a distance is only asked of vectors of one model, which have one length.
    rows = await tx.fetch(
        "with older as materialized (select s.segment_id, s.trace, s.precis, s.vector "
        "  from summaries s join segments g on g.id = s.segment_id "
        "  where s.user_id = $1 and s.vector_model = $4 and s.segment_id <> all($5) "
        "  and (g.opened_at, g.id) < "
        "    (select opened_at, id from segments where user_id = $1 and id = $2)) "
        "select segment_id, trace || ' ' || precis as text, "
        "1 - (vector <=> $3::text::vector) as cosine from older "
        "order by vector <=> $3::text::vector, segment_id limit $6",
        user_id, segment_id, literal(vector), model, list(without), limit,
    )  # fmt: skip
    return [Nearby(**dict(row)) for row in rows]


async def missing(tx: Tx, user_id: UUID, model: str, limit: int) -> list[Unencoded]:
    """Summaries without a vector of this model, newest first."""
    rows = await tx.fetch(
        "select segment_id, title, trace, precis from summaries "
        "where user_id = $1 and vector_model is distinct from $2 order by made_at desc limit $3",
        user_id, model, limit,
    )  # fmt: skip
    return [Unencoded(**dict(row)) for row in rows]


async def give(tx: Tx, user_id: UUID, one: Unencoded, vector: Sequence[float], model: str) -> None:
    """Give a summary its vector, unless it was written anew meanwhile."""
    await tx.execute(
        "update summaries set vector = $4::text::vector, vector_model = $5 "
        "where user_id = $1 and segment_id = $2 and trace = $3",
        user_id, one.segment_id, one.trace, literal(vector), model,
    )  # fmt: skip
