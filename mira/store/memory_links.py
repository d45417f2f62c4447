"""Links between memories: one table of edges, read in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from mira.errors import NotFound
from mira.store.database import Tx
from mira.store.memory_events import Link, LinkType

_SELECT = "select from_id, to_id, type, reason, confidence, created_at from memory_links "


async def add(tx: Tx, user_id: UUID, link: Link) -> bool:
    """Write an edge; False if one of this type stands there already."""
    touched = await tx.execute(
        "insert into memory_links (user_id, from_id, to_id, type, reason, confidence, created_at) "
        "values ($1, $2, $3, $4, $5, $6, $7) on conflict do nothing",
        user_id, link.from_id, link.to_id, link.type, link.reason, link.confidence, link.created_at,
    )  # fmt: skip
    return touched == 1


async def get(tx: Tx, user_id: UUID, from_id: UUID, to_id: UUID, type_: LinkType) -> Link:
    """Raises NotFound."""
    row = await tx.row(
        _SELECT + "where user_id = $1 and from_id = $2 and to_id = $3 and type = $4",
        user_id, from_id, to_id, type_,
    )  # fmt: skip
    if row is None:
        raise NotFound("There is no such link.")
    return Link(**dict(row))


async def remove(tx: Tx, user_id: UUID, from_id: UUID, to_id: UUID, type_: LinkType) -> bool:
    """Remove an edge; whether there was one."""
    touched = await tx.execute(
        "delete from memory_links where user_id = $1 and from_id = $2 and to_id = $3 and type = $4",
        user_id, from_id, to_id, type_,
    )  # fmt: skip
    return touched == 1


async def touching(tx: Tx, user_id: UUID, ids: Sequence[UUID], *, limit: int = 5000) -> list[Link]:
    """All edges from or to one of these memories, the newest first."""
    rows = await tx.fetch(
        "select distinct on (created_at, from_id, to_id, type) * from ("
        "select from_id, to_id, type, reason, confidence, created_at from memory_links "
        "where user_id = $1 and from_id = any($2) union all "
        "select from_id, to_id, type, reason, confidence, created_at from memory_links "
        "where user_id = $1 and to_id = any($2)) as edges "
        "order by created_at desc, from_id, to_id, type limit $3",
        user_id, list(ids), limit,
    )  # fmt: skip
    return [Link(**dict(row)) for row in rows]
