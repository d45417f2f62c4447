"""Which memories a step of changes concerned."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from mira.store.database import Tx


async def touched(tx: Tx, user_id: UUID, steps: Sequence[UUID]) -> dict[UUID, frozenset[UUID]]:
    """The memories of each of these steps; entities that a step merged are not counted."""
    rows = await tx.fetch(
        "select step, array_agg(distinct memory_id) as memories from memory_events "
        "where user_id = $1 and step = any($2) "
        "and not coalesce(after ? 'merged_into' or before ? 'merged_into', false) group by step",
        user_id, list(set(steps)),
    )  # fmt: skip
    return {row["step"]: frozenset(row["memories"]) for row in rows}
