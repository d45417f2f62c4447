"""Entities: whom and what memories are about.

An entity is one (key, type) of a user; `key` is the name as it is compared. An entity that was
merged into another stays as a pointer to it, so that the old name finds the new one. How many
memories an entity has is counted, never kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from mira.errors import NotFound
from mira.ids import Ids
from mira.store.database import Tx


class NewEntity(msgspec.Struct, frozen=True):
    """A name as it was said, as it is compared, and what kind of thing it is."""

    name: str
    key: str
    type: str


class EntityView(msgspec.Struct, frozen=True, kw_only=True):
    """An entity as it stands; `memories` counts the active ones that are about it."""

    id: UUID
    name: str
    key: str
    type: str
    merged_into: UUID | None
    created_at: datetime
    memories: int


_SELECT = """
select e.id, e.name, e.key, e.type, e.merged_into, e.created_at,
  (select count(*) from memory_entities x join memories m on m.id = x.memory_id
   where x.entity_id = e.id and m.status = 'active') as memories
from entities e where e.user_id = $1
"""


async def ensure(
    tx: Tx, user_id: UUID, names: Sequence[NewEntity], ids: Ids, now: datetime
) -> list[UUID]:
    """The entities of these names, each once, in their order; made if absent, merges followed."""
    unique = {(one.key, one.type): one for one in names if one.key}
    if not unique:
        return []
    await tx.many(
        "insert into entities (id, user_id, name, key, type, created_at) "
        "values ($1, $2, $3, $4, $5, $6) on conflict (user_id, key, type) do nothing",
        [(ids.new(), user_id, one.name, one.key, one.type, now) for one in unique.values()],
    )
    rows = await tx.fetch(
        "select id, key, type from entities where user_id = $1 and key = any($2)",
        user_id, [key for key, _ in unique],
    )  # fmt: skip
    found = {(row["key"], row["type"]): row["id"] for row in rows}
    final = await follow(tx, user_id, [found[key] for key in unique])
    return list(dict.fromkeys(final))


async def follow(tx: Tx, user_id: UUID, ids: Sequence[UUID]) -> list[UUID]:
    """Where each of these entities is now, merges followed; an unknown one stays as it is."""
    rows = await tx.fetch(
        "with recursive onward(start, at, next) as ("
        "  select id, id, merged_into from entities where user_id = $1 and id = any($2) "
        "  union "
        "  select o.start, e.id, e.merged_into from onward o join entities e on e.id = o.next) "
        "select start, at from onward where next is null",
        user_id, list(ids),
    )  # fmt: skip
    ends = {row["start"]: row["at"] for row in rows}
    return [ends.get(one, one) for one in ids]


async def get(tx: Tx, user_id: UUID, entity_id: UUID) -> EntityView:
    """Raises NotFound."""
    row = await tx.row(_SELECT + "and e.id = $2", user_id, entity_id)
    if row is None:
        raise NotFound("There is no such entity.")
    return EntityView(**dict(row))


async def find(tx: Tx, user_id: UUID, ids: Sequence[UUID]) -> list[EntityView]:
    """Those of these entities that exist, those of most memories first."""
    if not ids:
        return []
    rows = await tx.fetch(
        _SELECT + "and e.id = any($2) order by memories desc, e.id", user_id, list(ids)
    )
    return [EntityView(**dict(row)) for row in rows]


async def page(
    tx: Tx, user_id: UUID, *, before: tuple[int, UUID] | None, limit: int, q: str | None = None
) -> list[EntityView]:
    """Entities that are not merged into others, those of most memories first.

    `q`: those whose key holds it. `before` continues a page: (memories, id) of its last row.
    """
    memories, last = before or (None, None)
    rows = await tx.fetch(
        f"select * from ({_SELECT} and e.merged_into is null "  # noqa: S608
        "and ($2::text is null or position($2 in e.key) > 0)) as found "
        "where $3::bigint is null or (memories, id) < ($3, $4) "
        "order by memories desc, id desc limit $5",
        user_id, q, memories, last, limit,
    )  # fmt: skip
    return [EntityView(**dict(row)) for row in rows]


async def known(tx: Tx, user_id: UUID, *, limit: int = 50_000) -> list[tuple[UUID, str, str]]:
    """(id, key, type) of the user's entities, those that were merged too, for comparing names."""
    rows = await tx.fetch(
        "select id, key, type from entities where user_id = $1 order by created_at desc limit $2",
        user_id, limit,
    )  # fmt: skip
    return [(row["id"], row["key"], row["type"]) for row in rows]


async def of_memories(tx: Tx, user_id: UUID, ids: Sequence[UUID]) -> dict[UUID, tuple[UUID, ...]]:
    """The entities of each of these memories, in a fixed order."""
    rows = await tx.fetch(
        "select memory_id, array_agg(entity_id order by entity_id) as entities "
        "from memory_entities where user_id = $1 and memory_id = any($2) group by 1",
        user_id, list(ids),
    )  # fmt: skip
    return {row["memory_id"]: tuple(row["entities"]) for row in rows}


async def assign(tx: Tx, user_id: UUID, memory_id: UUID, entities: Sequence[UUID]) -> None:
    """Let a memory be about exactly these entities. Those that do not exist are left out."""
    await tx.execute(
        "delete from memory_entities "
        "where user_id = $1 and memory_id = $2 and entity_id <> all($3)",
        user_id, memory_id, list(entities),
    )  # fmt: skip
    await tx.execute(
        "insert into memory_entities (user_id, memory_id, entity_id) "
        "select $1, $2, id from entities where user_id = $1 and id = any($3) "
        "on conflict do nothing",
        user_id, memory_id, list(entities),
    )  # fmt: skip


async def memories_of(tx: Tx, user_id: UUID, entity_id: UUID) -> list[UUID]:
    """All memories of an entity, archived ones too."""
    rows = await tx.fetch(
        "select memory_id from memory_entities where user_id = $1 and entity_id = $2 "
        "order by memory_id",
        user_id, entity_id,
    )  # fmt: skip
    return [row["memory_id"] for row in rows]


async def set_merged(tx: Tx, user_id: UUID, entity_id: UUID, into: UUID | None) -> None:
    """Let an entity point to the one it was merged into, or stand for itself again."""
    await tx.execute(
        "update entities set merged_into = $3 where user_id = $1 and id = $2",
        user_id, entity_id, into,
    )  # fmt: skip


async def remove_unused(tx: Tx, user_id: UUID, ids: Sequence[UUID]) -> None:
    """Remove those of these entities that no memory is about and that no other leads to."""
    await tx.execute(
        "delete from entities e where e.user_id = $1 and e.id = any($2) "
        "and not exists (select from memory_entities x where x.entity_id = e.id) "
        "and not exists (select from entities o where o.merged_into = e.id)",
        user_id, list(ids),
    )  # fmt: skip
