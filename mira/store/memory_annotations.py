"""Annotations: remarks that stand beside a memory."""

from __future__ import annotations

from uuid import UUID

from mira.store.database import Tx
from mira.store.memory_events import Annotation


async def add(tx: Tx, user_id: UUID, memory_id: UUID, annotation: Annotation) -> None:
    await tx.execute(
        "insert into memory_annotations (id, user_id, memory_id, author, text, at) "
        "values ($1, $2, $3, $4, $5, $6)",
        annotation.id, user_id, memory_id, annotation.author, annotation.text, annotation.at,
    )  # fmt: skip


async def remove(tx: Tx, user_id: UUID, annotation_id: UUID) -> bool:
    """Whether there was one."""
    touched = await tx.execute(
        "delete from memory_annotations where user_id = $1 and id = $2", user_id, annotation_id
    )
    return touched == 1


async def of_memory(tx: Tx, user_id: UUID, memory_id: UUID) -> list[Annotation]:
    """Oldest first."""
    rows = await tx.fetch(
        "select id, author, text, at from memory_annotations "
        "where user_id = $1 and memory_id = $2 order by at, id",
        user_id, memory_id,
    )  # fmt: skip
    return [Annotation(**dict(row)) for row in rows]
