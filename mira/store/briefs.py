"""Briefs: the older part of a long segment in short. The turns themselves stay as they are."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import msgspec

from mira.store.database import Tx


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """It stands for the turns of a segment up to and with `through_seq`."""

    id: UUID
    segment_id: UUID
    through_seq: int
    text: str
    made_at: datetime


async def newest(tx: Tx, user_id: UUID, segment_id: UUID) -> Brief | None:
    """The brief of a segment that counts."""
    row = await tx.row(
        "select id, segment_id, through_seq, text, made_at from briefs "
        "where user_id = $1 and segment_id = $2 order by through_seq desc limit 1",
        user_id, segment_id,
    )  # fmt: skip
    return None if row is None else Brief(**dict(row))


async def write(
    tx: Tx, user_id: UUID, brief: Brief, *, provider: str | None, model: str | None
) -> bool:
    """Keep a brief; False, and nothing is changed, if there is one through this turn already."""
    return bool(
        await tx.execute(
            "insert into briefs (id, user_id, segment_id, through_seq, text, provider, model, "
            "made_at) values ($1, $2, $3, $4, $5, $6, $7, $8) "
            "on conflict (segment_id, through_seq) do nothing",
            brief.id, user_id, brief.segment_id, brief.through_seq, brief.text, provider, model,
            brief.made_at,
        )
    )  # fmt: skip
