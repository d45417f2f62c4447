"""Which memories are like which: by vectors that are stored, by entities that they share.

Always within one user and one space; only active memories that are still true.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from mira.store.database import Tx
from mira.store.spaces import Source, Space

_STANDING = (
    "m.user_id = $1 and m.status = 'active' and m.superseded_by is null and m.valid_to is null"
)


class Alike(msgspec.Struct, frozen=True, kw_only=True):
    """Two memories and the cosine of their vectors; `one` has the lower number."""

    one: UUID
    other: UUID
    likeness: float


async def near(
    tx: Tx, user_id: UUID, space: Space, doc: int, *, floor: float, limit: int
) -> list[tuple[UUID, float]]:
    """The memories most like one, from `floor` up, best first."""
    rows = await tx.fetch(
        "with here as materialized ("  # noqa: S608
        f"  select v from {space.table} where user_id = $1 and source = $2 and model = $3 "
        "  and doc = $4 and unit = 0), "
        "best as materialized ("
        "  select x.doc, 1 - (x.v <=> here.v) as likeness "
        f"  from here, {space.table} x where x.user_id = $1 and x.source = $2 and x.model = $3 "
        "  and x.unit = 0 and x.doc <> $4 order by 2 desc, x.doc desc limit $5) "
        "select m.id, best.likeness from best join memories m on m.doc = best.doc "
        f"and {_STANDING} where best.likeness >= $6 order by 2 desc, m.doc desc",
        user_id, Source.MEMORIES, space.id, doc, limit, floor,
    )  # fmt: skip
    return [(row["id"], row["likeness"]) for row in rows]


async def sharing_entities(
    tx: Tx, user_id: UUID, space: Space | None, memory_id: UUID, doc: int, *, floor: float,
    limit: int,
) -> list[tuple[UUID, float]]:  # fmt: skip
    """Memories about somebody or something that this one is about, those most like it first.

    From `floor` up; where there are no vectors, the newest, with a likeness of 0.
    """
    if space is None:
        rows = await tx.fetch(
            "select distinct m.id, m.doc, 0.0::float8 as likeness from memory_entities a "  # noqa: S608
            "join memory_entities b on b.entity_id = a.entity_id and b.memory_id <> a.memory_id "
            f"join memories m on m.id = b.memory_id and {_STANDING} "
            "where a.user_id = $1 and a.memory_id = $2 order by m.doc desc limit $3",
            user_id, memory_id, limit,
        )  # fmt: skip
        return [(row["id"], row["likeness"]) for row in rows]
    rows = await tx.fetch(
        "with here as materialized ("  # noqa: S608
        f"  select v from {space.table} where user_id = $1 and source = $2 and model = $3 "
        "  and doc = $4 and unit = 0), "
        "sharing as materialized ("
        "  select distinct m.id, m.doc from memory_entities a "
        "  join memory_entities b on b.entity_id = a.entity_id and b.memory_id <> a.memory_id "
        f"  join memories m on m.id = b.memory_id and {_STANDING} "
        "  where a.user_id = $1 and a.memory_id = $7 order by m.doc desc limit 500) "
        "select s.id, 1 - (x.v <=> here.v) as likeness from here, sharing s "
        f"join {space.table} x on x.user_id = $1 and x.source = $2 and x.model = $3 "
        "and x.doc = s.doc and x.unit = 0 "
        "where 1 - (x.v <=> here.v) >= $6 order by 2 desc, s.doc desc limit $5",
        user_id, Source.MEMORIES, space.id, doc, limit, floor, memory_id,
    )  # fmt: skip
    return [(row["id"], row["likeness"]) for row in rows]


async def newest(tx: Tx, user_id: UUID, *, since_use_day: int, limit: int) -> list[int]:
    """The numbers of memories made since a use-day, newest first, then of the most important."""
    rows = await tx.fetch(
        "select m.doc from memories m join memory_scores s on s.memory_id = m.id "  # noqa: S608
        f"where {_STANDING} order by (s.use_day_created >= $2) desc, "
        "case when s.use_day_created >= $2 then m.doc end desc, s.importance desc, m.doc desc "
        "limit $3",
        user_id, since_use_day, limit,
    )  # fmt: skip
    return [row["doc"] for row in rows]


async def pairs(
    tx: Tx, user_id: UUID, space: Space, docs: Sequence[int], *, floor: float, each: int = 12
) -> list[Alike]:
    """For each of these numbers the memories most like it, from `floor` up."""
    rows = await tx.fetch(
        "with seeds as materialized ("  # noqa: S608
        f"  select doc, v from {space.table} where user_id = $1 and source = $2 and model = $3 "
        "  and unit = 0 and doc = any($4)), "
        "found as materialized ("
        "  select s.doc as one, near.doc as other, near.likeness from seeds s "
        "  cross join lateral (select x.doc, 1 - (x.v <=> s.v) as likeness "
        f"    from {space.table} x where x.user_id = $1 and x.source = $2 and x.model = $3 "
        "    and x.unit = 0 and x.doc <> s.doc order by x.v <=> s.v, x.doc limit $6) near "
        "  where near.likeness >= $5) "
        "select distinct a.id as one, b.id as other, f.likeness from found f "
        "join memories a on a.user_id = $1 and a.doc = least(f.one, f.other) "
        "join memories b on b.user_id = $1 and b.doc = greatest(f.one, f.other) "
        "where a.status = 'active' and a.superseded_by is null and a.valid_to is null "
        "and b.status = 'active' and b.superseded_by is null and b.valid_to is null "
        "and (a.happens_at is null or b.happens_at is null or a.happens_at = b.happens_at)",
        user_id, Source.MEMORIES, space.id, list(docs), floor, each,
    )  # fmt: skip
    return [Alike(**dict(row)) for row in rows]


class NamedEntity(msgspec.Struct, frozen=True, kw_only=True):
    """An entity that stands for itself, with one of its memories."""

    id: UUID
    name: str
    key: str
    type: str
    created_at: datetime
    memories: int
    example: str | None


async def named(tx: Tx, user_id: UUID, *, limit: int) -> list[NamedEntity]:
    """Entities with active memories that are not merged into others, the most used first."""
    rows = await tx.fetch(
        "with used as materialized ("  # noqa: S608
        "  select x.entity_id, count(*) as memories, max(m.doc) as newest "
        "  from memory_entities x join memories m on m.id = x.memory_id "
        f"  where x.user_id = $1 and {_STANDING} group by 1) "
        "select e.id, e.name, e.key, e.type, e.created_at, u.memories, m.text as example "
        "from used u join entities e on e.id = u.entity_id "
        "join memories m on m.user_id = $1 and m.doc = u.newest "
        "where e.user_id = $1 and e.merged_into is null "
        "order by u.memories desc, e.key, e.id limit $2",
        user_id, limit,
    )  # fmt: skip
    return [NamedEntity(**dict(row)) for row in rows]
