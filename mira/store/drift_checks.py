"""How true summaries were each time they were held against their segments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from mira.store.database import Tx


class DriftCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One check. `flagged` names places and kinds, and holds no words; `nearest` are older
    summaries that the model was not shown, with their cosines."""

    id: UUID
    segment_id: UUID
    at: datetime
    kind: Literal["made", "again"]
    sentences: int
    flagged: Sequence[Mapping[str, Any]]
    drift: float
    corrected: bool
    nearest: Sequence[tuple[UUID, float]] = ()


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """How it stands with a user's summaries. Shares and means are 0 while there are none."""

    summaries: int
    drifted: int
    mean: float
    worst: float
    corrected: int
    rechecked: int
    last_at: datetime | None


class Recent(msgspec.Struct, frozen=True, kw_only=True):
    """How true the newest summaries are. Zeros and None while there are none."""

    summaries: int
    mean: float
    worst: float
    worst_segment: UUID | None


async def write(tx: Tx, user_id: UUID, check: DriftCheck) -> None:
    """Write down a check, and on its summary what came of it."""
    await tx.execute(
        "insert into drift_checks (id, user_id, segment_id, at, kind, sentences, flagged, drift, "
        "corrected, nearest) values ($1, $2, $3, $4, $5, $6, $7::jsonb, $8, $9, $10::jsonb)",
        check.id, user_id, check.segment_id, check.at, check.kind, check.sentences,
        json.dumps(list(check.flagged)), check.drift, check.corrected,
        json.dumps([{"id": str(one), "cosine": round(cosine, 4)} for one, cosine in check.nearest]),
    )  # fmt: skip
    if check.kind == "again":
        await tx.execute(
            "update summaries set rechecked_at = $3, drift = $4 "
            "where user_id = $1 and segment_id = $2",
            user_id, check.segment_id, check.at, check.drift,
        )  # fmt: skip


async def of(tx: Tx, user_id: UUID, segment_id: UUID) -> list[DriftCheck]:
    """The checks of one summary, oldest first."""
    rows = await tx.fetch(
        "select id, segment_id, at, kind, sentences, flagged, drift, corrected, nearest "
        "from drift_checks where user_id = $1 and segment_id = $2 order by at, id",
        user_id, segment_id,
    )  # fmt: skip
    return [_check(row) for row in rows]


async def due(tx: Tx, user_id: UUID, *, every: int) -> bool:
    """Whether `every` summaries have been made since an old one was last looked at."""
    made: int = await tx.value(
        "select count(*) from summaries where user_id = $1 and made_at > coalesce("
        "(select max(at) from drift_checks where user_id = $1 and kind = 'again'), '-infinity')",
        user_id,
    )
    return made >= every


async def longest_unchecked(tx: Tx, user_id: UUID) -> UUID | None:
    """The segment whose summary was held against it longest ago; None if there is no summary that
    a model has made."""
    found: UUID | None = await tx.value(
        "select segment_id from summaries where user_id = $1 and model is not null "
        "order by coalesce(rechecked_at, made_at), segment_id limit 1",
        user_id,
    )
    return found


async def overview(tx: Tx, user_id: UUID) -> Overview:
    """How true the user's summaries are now, and how many were corrected or looked at again."""
    row = await tx.row(
        "select count(*) as summaries, count(*) filter (where drift > 0) as drifted, "
        "coalesce(avg(drift), 0)::float8 as mean, coalesce(max(drift), 0)::float8 as worst, "
        "count(rechecked_at) as rechecked, "
        "(select count(*) from drift_checks where user_id = $1 and corrected) as corrected, "
        "(select max(at) from drift_checks where user_id = $1) as last_at "
        "from summaries where user_id = $1",
        user_id,
    )
    assert row is not None
    return Overview(**dict(row))


async def recent(tx: Tx, user_id: UUID, *, limit: int) -> Recent:
    """How true the user's newest `limit` summaries are."""
    row = await tx.row(
        "select count(*) as summaries, coalesce(avg(drift), 0)::float8 as mean, "
        "coalesce(max(drift), 0)::float8 as worst, "
        "(array_agg(segment_id order by drift desc, made_at desc))[1] as worst_segment "
        "from (select segment_id, drift, made_at from summaries where user_id = $1 "
        "order by made_at desc, segment_id limit $2) as newest",
        user_id, limit,
    )  # fmt: skip
    assert row is not None
    return Recent(**dict(row))


def _check(row: object) -> DriftCheck:
    fields = dict(row)  # type: ignore[call-overload]
    fields["flagged"] = json.loads(fields["flagged"])
    fields["nearest"] = [(UUID(n["id"]), n["cosine"]) for n in json.loads(fields["nearest"])]
    return DriftCheck(**fields)
