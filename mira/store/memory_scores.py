"""Scores of memories: calculated by the database (schema/functions/scoring.sql), read, acted on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from mira.store.database import Tx

#: A memory whose score stays under this is forgotten …
FLOOR = 0.02
#: … after so many use-days of it.
PATIENCE = 7


class ScoreParts(msgspec.Struct, frozen=True, kw_only=True):
    """What the others give to a memory's score, and the score itself."""

    links: int
    entities: float
    score: float


async def at(
    tx: Tx, user_id: UUID, ids: Sequence[UUID], now: datetime
) -> dict[UUID, ScoreParts]:  # fmt: skip
    """The scores of these memories at `now`, calculated as they stand."""
    if not ids:
        return {}
    rows = await tx.fetch("select * from memory_scores_at($1, $2, $3)", user_id, list(ids), now)
    return {
        row["memory_id"]: ScoreParts(
            links=row["links"], entities=row["entities"], score=row["score"]
        )
        for row in rows
    }


async def recalculate(tx: Tx, user_id: UUID, now: datetime, *, dated: bool = False) -> int:
    """Calculate the importance of a user's active memories anew; returns how many changed.

    `dated` restricts it to those with a date from 7 days ago to 30 days ahead: what the calendar
    alone can change. Notes since when a score has been under the floor.
    """
    changed: int = await tx.value("select recalculate_memories($1, $2, $3)", user_id, now, dated)
    return changed


async def refresh(tx: Tx, user_id: UUID, ids: Sequence[UUID], now: datetime) -> None:
    """Store the scores of some memories as they are now."""
    await tx.execute(
        "update memory_scores s set importance = f.score, shared_entities = f.entities "
        "from memory_scores_at($1, $2, $3) f where s.memory_id = f.memory_id",
        user_id, list(ids), now,
    )  # fmt: skip


async def sinking(
    tx: Tx, user_id: UUID, use_day: int, *, for_days: int = PATIENCE, limit: int = 500
) -> list[UUID]:
    """Active memories that have been under the floor for at least `for_days` use-days, those
    that have been longest first."""
    rows = await tx.fetch(
        "select s.memory_id from memory_scores s join memories m on m.id = s.memory_id "
        "where s.user_id = $1 and s.below_since_use_day <= $2 and m.status = 'active' "
        "order by s.below_since_use_day, s.memory_id limit $3",
        user_id, use_day - for_days, limit,
    )  # fmt: skip
    return [row["memory_id"] for row in rows]


async def reviewed(tx: Tx, user_id: UUID, ids: Sequence[UUID], use_day: int) -> None:
    """The floor review has looked at these and left them: their days under it count anew."""
    await tx.execute(
        "update memory_scores set below_since_use_day = null, reviewed_use_day = $3 "
        "where user_id = $1 and memory_id = any($2)",
        user_id, list(ids), use_day,
    )  # fmt: skip


async def count_anew(tx: Tx, user_id: UUID, memory_id: UUID) -> None:
    """Let the days of a memory under the floor count from now on."""
    await tx.execute(
        "update memory_scores set below_since_use_day = null "
        "where user_id = $1 and memory_id = $2 and below_since_use_day is not null",
        user_id, memory_id,
    )  # fmt: skip


async def integrated(tx: Tx, user_id: UUID, ids: Sequence[UUID], now: datetime) -> None:
    """Integration has looked at these successfully."""
    await tx.execute(
        "update memory_scores set integrated_at = $3 where user_id = $1 and memory_id = any($2)",
        user_id, list(ids), now,
    )  # fmt: skip


async def not_integrated(tx: Tx, user_id: UUID, *, limit: int) -> list[UUID]:
    """Active memories that integration has not looked at yet, oldest first."""
    rows = await tx.fetch(
        "select s.memory_id from memory_scores s join memories m on m.id = s.memory_id "
        "where s.user_id = $1 and s.integrated_at is null and m.status = 'active' "
        "order by m.created_at, m.id limit $2",
        user_id, limit,
    )  # fmt: skip
    return [row["memory_id"] for row in rows]
