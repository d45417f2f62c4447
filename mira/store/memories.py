"""Memories as rows: found by id or short id, listed, written, removed.

Every function works in the caller's transaction of the memory's user. Writers call `lock` first:
one at a time may change a user's memories. Nothing here writes the account of a change or the
index; see mira/memory/journal.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET

from mira.errors import Conflict, NotFound
from mira.store.database import Tx
from mira.store.memory_events import Counts, Fields, MemorySource, Record, Status

Order = Literal["recent", "importance"]
_SHORT_ID = re.compile(r"mem_[0-9a-f]{8}")


class EntityName(msgspec.Struct, frozen=True):
    """Somebody or something that a memory is about."""

    name: str
    type: str


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory as it stands. Times are aware; `importance` is as last calculated."""

    id: UUID
    user_id: UUID
    short_id: str
    doc: int
    text: str
    status: Status
    source: MemorySource
    source_segment: UUID | None = None
    source_turn: UUID | None = None
    source_messages: tuple[UUID, ...] = ()
    source_memories: tuple[UUID, ...] = ()
    happens_at: datetime | None = None
    expires_at: datetime | None = None
    valid_from: datetime
    valid_to: datetime | None = None
    superseded_by: UUID | None = None
    created_at: datetime
    updated_at: datetime
    version: int
    importance: float
    use_day_created: int
    use_day_accessed: int | None = None
    access_count: int = 0
    mention_count: int = 0
    below_since_use_day: int | None = None
    integrated_at: datetime | None = None
    reviewed_use_day: int | None = None
    entities: tuple[EntityName, ...] = ()

    @property
    def short(self) -> str:
        """What prompts call it."""
        return self.short_id


_SELECT = """
select m.*, s.importance, s.use_day_created, s.use_day_accessed, s.access_count, s.mention_count,
  s.below_since_use_day, s.integrated_at, s.reviewed_use_day,
  (select coalesce(json_agg(json_build_array(e.name, e.type) order by e.type, e.name), '[]')::text
   from memory_entities x join entities e on e.id = x.entity_id
   where x.memory_id = m.id) as entities
from memories m join memory_scores s on s.memory_id = m.id
where m.user_id = $1
"""


async def lock(tx: Tx, user_id: UUID) -> None:
    """Let no other transaction change this user's memories until this one ends."""
    await tx.execute(
        "select pg_advisory_xact_lock(hashtextextended($1, 20260105))", f"memories/{user_id}"
    )


async def use_days(tx: Tx, user_id: UUID) -> int:
    """On how many days the user has spoken; 0 where there is no conversation."""
    days = await tx.value("select use_days from conversations where user_id = $1", user_id)
    return days or 0


async def resolve(tx: Tx, user_id: UUID, refs: Sequence[UUID | str]) -> dict[UUID | str, UUID]:
    """The ids of those refs (ids or short ids) that are memories of this user."""
    ids = {ref: known for ref in refs if (known := _as_uuid(ref)) is not None}
    shorts = [str(ref) for ref in refs if ref not in ids and _SHORT_ID.fullmatch(str(ref))]
    rows = await tx.fetch(
        "select id, short_id from memories "
        "where user_id = $1 and (id = any($2) or short_id = any($3))",
        user_id, list(ids.values()), shorts,
    )  # fmt: skip
    present = {row["id"] for row in rows}
    by_short = {row["short_id"]: row["id"] for row in rows}
    found = {ref: known for ref, known in ids.items() if known in present}
    return found | {ref: by_short[str(ref)] for ref in refs if str(ref) in by_short}


async def find(tx: Tx, user_id: UUID, ids: Sequence[UUID]) -> dict[UUID, Memory]:
    """Those of these memories that exist."""
    if not ids:
        return {}
    rows = await tx.fetch(_SELECT + "and m.id = any($2)", user_id, list(ids))
    return {row["id"]: _memory(row) for row in rows}


async def get(tx: Tx, user_id: UUID, ref: UUID | str) -> Memory:
    """One memory. Raises NotFound."""
    found = await resolve(tx, user_id, [ref])
    if not found:
        raise NotFound("There is no such memory.")
    memory_id = found[ref]
    return (await find(tx, user_id, [memory_id]))[memory_id]


async def by_doc(tx: Tx, user_id: UUID, docs: Sequence[int]) -> dict[int, Memory]:
    """Those of the memories with these numbers that exist."""
    if not docs:
        return {}
    rows = await tx.fetch(_SELECT + "and m.doc = any($2)", user_id, list(docs))
    return {row["doc"]: _memory(row) for row in rows}


async def page(
    tx: Tx, user_id: UUID, *, status: Status | None, order: Order,
    before: tuple[datetime | float, UUID] | None, limit: int,
) -> list[Memory]:  # fmt: skip
    """At most `limit` memories: the newest first, or the most important.

    `before` continues a page: (created_at or importance, id) of its last row.
    """
    key = "m.created_at" if order == "recent" else "s.importance"
    kind = "timestamptz" if order == "recent" else "real"
    value, last = before or (None, None)
    rows = await tx.fetch(
        _SELECT + "and m.status = coalesce($2, m.status) "
        f"and ($3::{kind} is null or ({key}, m.id) < ($3, $4)) "
        f"order by {key} desc, m.id desc limit $5",
        user_id, status, value, last, limit,
    )  # fmt: skip
    return [_memory(row) for row in rows]


async def active_texts(tx: Tx, user_id: UUID, docs: Sequence[int]) -> list[Memory]:
    """Of the memories with these numbers those that are active and not superseded."""
    found = await by_doc(tx, user_id, docs)
    return [
        m for m in found.values() if m.status == "active" and m.superseded_by is None
        and m.valid_to is None
    ]  # fmt: skip


async def short_id_is_free(tx: Tx, user_id: UUID, short_id: str) -> bool:
    free: bool = await tx.value(
        "select not exists (select from memories where user_id = $1 and short_id = $2)",
        user_id, short_id,
    )  # fmt: skip
    return free


async def insert(tx: Tx, user_id: UUID, memory_id: UUID, record: Record, now: datetime) -> None:
    """Write a memory with its counters (its entities are rows of their own)."""
    await tx.execute(
        "insert into memories (id, user_id, short_id, doc, text, status, source, source_segment, "
        "source_turn, source_messages, source_memories, happens_at, expires_at, valid_from, "
        "valid_to, superseded_by, created_at, updated_at) values "
        "($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)",
        memory_id, user_id, record.short_id, record.doc, record.text, record.status, record.source,
        record.source_segment, record.source_turn, list(record.source_messages),
        list(record.source_memories), record.happens_at, record.expires_at, record.valid_from,
        record.valid_to, record.superseded_by, record.created_at, now,
    )  # fmt: skip
    await tx.execute(
        "insert into memory_scores (memory_id, user_id, importance, use_day_created, "
        "use_day_accessed, access_count, mention_count) values ($1, $2, $3, $4, $5, $6, $7)",
        memory_id, user_id, record.importance, record.use_day_created, record.use_day_accessed,
        record.access_count, record.mention_count,
    )  # fmt: skip


async def change(tx: Tx, user_id: UUID, memory_id: UUID, fields: Fields, now: datetime) -> None:
    """Set those fields that are given; the version rises by one. Raises NotFound."""
    given = {
        name: value for name in fields.__struct_fields__
        if (value := getattr(fields, name)) is not UNSET
    }  # fmt: skip
    columns = "".join(f", {name} = ${number}" for number, name in enumerate(given, 4))
    touched = await tx.execute(
        f"update memories set version = version + 1, updated_at = $3{columns} "  # noqa: S608
        "where user_id = $1 and id = $2",
        user_id, memory_id, now, *given.values(),
    )  # fmt: skip
    if not touched:
        raise NotFound("There is no such memory.")


async def count(
    tx: Tx, user_id: UUID, memory_id: UUID, *, mentions: int, accessed: int | None,
    turn_id: UUID | None = None,
) -> None:  # fmt: skip
    """Add to how often it was said (never below 0), and set when it was last used."""
    await tx.execute(
        "update memory_scores set mention_count = greatest(0, mention_count + $3), "
        "use_day_accessed = $4, below_since_use_day = null, last_turn = coalesce($5, last_turn) "
        "where user_id = $1 and memory_id = $2",
        user_id, memory_id, mentions, accessed, turn_id,
    )  # fmt: skip


async def used(
    tx: Tx, user_id: UUID, ids: Sequence[UUID], turn_id: UUID, use_day: int
) -> list[UUID]:
    """Count one use of each by a turn that has not counted yet; returns which were counted."""
    rows = await tx.fetch(
        "update memory_scores set access_count = access_count + 1, use_day_accessed = $4, "
        "below_since_use_day = null, last_turn = $3 "
        "where user_id = $1 and memory_id = any($2) and last_turn is distinct from $3 "
        "returning memory_id",
        user_id, list(ids), turn_id, use_day,
    )  # fmt: skip
    return [row["memory_id"] for row in rows]


async def remove(tx: Tx, user_id: UUID, memory_id: UUID) -> None:
    """Remove a memory with its counters, annotations, links and entity rows."""
    await tx.execute("delete from memories where user_id = $1 and id = $2", user_id, memory_id)


async def succeeded_by(tx: Tx, user_id: UUID, memory_id: UUID) -> list[UUID]:
    """The memories that this one has superseded, or into which it took others."""
    rows = await tx.fetch(
        "select id from memories where user_id = $1 and superseded_by = $2 order by id",
        user_id, memory_id,
    )  # fmt: skip
    return [row["id"] for row in rows]


async def successors_of(tx: Tx, user_id: UUID, ids: Sequence[UUID]) -> dict[UUID, list[UUID]]:
    """For each of these: what superseded it, what superseded that, and so on."""
    rows = await tx.fetch(
        "with recursive later(start, id, depth) as ("
        "  select id, superseded_by, 1 from memories where user_id = $1 and id = any($2) "
        "  union select l.start, m.superseded_by, l.depth + 1 "
        "  from later l join memories m on m.id = l.id where l.depth < 1000) "
        "select start, array_agg(id order by depth) as chain from later "
        "where id is not null group by start",
        user_id, list(ids),
    )  # fmt: skip
    return {row["start"]: list(row["chain"]) for row in rows}


def record_of(memory: Memory, entities: tuple[UUID, ...]) -> Record:
    """A memory as it can be written again."""
    values: dict[str, Any] = {
        name: getattr(memory, name) for name in Record.__struct_fields__ if name != "entities"
    }
    return Record(**values, entities=entities)


def counts_of(memory: Memory) -> Counts:
    """What rises with each mention."""
    return Counts(mention_count=memory.mention_count, use_day_accessed=memory.use_day_accessed)


def expect_version(memory: Memory, version: int) -> None:
    """Raises Conflict if the memory has changed since it had this version."""
    if memory.version != version:
        raise Conflict("This memory has been changed meanwhile.")


def _as_uuid(ref: UUID | str) -> UUID | None:
    if isinstance(ref, UUID):
        return ref
    try:
        return UUID(ref)
    except ValueError:
        return None


_KEPT = frozenset(Memory.__struct_fields__)


def _memory(row: object) -> Memory:
    fields = {k: v for k, v in dict(row).items() if k in _KEPT}  # type: ignore[call-overload]
    for name in ("source_messages", "source_memories"):
        fields[name] = tuple(fields[name])
    fields["entities"] = tuple(EntityName(*e) for e in msgspec.json.decode(fields["entities"]))
    return Memory(**fields)
