"""The account of what happened to memories: written with each change, read, marked as undone.

An event says what stood before and after as a `State`, of which only what changed is set. Events
of one step belong together: they were done by one call and are undone by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from mira.errors import NotFound
from mira.store.database import Tx

Kind = Literal[
    "created", "reinforced", "touched", "linked", "unlinked", "annotated", "merged", "superseded",
    "archived", "restored", "edited", "deleted", "undone",
]  # fmt: skip
Actor = Literal[
    "user", "model", "extraction", "linking", "consolidation", "review", "entities", "decay",
    "import",
]  # fmt: skip
LinkType = Literal[
    "conflicts", "supersedes", "corroborates", "refines", "exemplifies", "precedes",
    "contextualizes", "causes", "shares_entity", "other",
]  # fmt: skip
MemorySource = Literal["extraction", "tool", "user", "import", "merge"]
Status = Literal["active", "archived"]


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A memory whole, as a row that can be written again."""

    short_id: str
    doc: int
    text: str
    status: Status = "active"
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
    importance: float
    use_day_created: int
    use_day_accessed: int | None = None
    access_count: int = 0
    mention_count: int = 0
    entities: tuple[UUID, ...] = ()


class Fields(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Some columns of a memory."""

    text: str | UnsetType = UNSET
    status: Status | UnsetType = UNSET
    happens_at: datetime | UnsetType | None = UNSET
    expires_at: datetime | UnsetType | None = UNSET
    valid_from: datetime | UnsetType = UNSET
    valid_to: datetime | UnsetType | None = UNSET
    superseded_by: UUID | UnsetType | None = UNSET


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """An edge between two memories."""

    from_id: UUID
    to_id: UUID
    type: LinkType
    reason: str
    confidence: float
    created_at: datetime


class Annotation(msgspec.Struct, frozen=True, kw_only=True):
    """A remark on a memory."""

    id: UUID
    author: Literal["user", "model", "review"]
    text: str
    at: datetime


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """What rises when a memory is said again or touched."""

    mention_count: int
    use_day_accessed: int | None


class Evidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who said a memory again, where, and in which words."""

    source: MemorySource
    segment_id: UUID | None = None
    message_ids: tuple[UUID, ...] = ()
    text: str = ""


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an event changed, before or after; None where there was nothing."""

    record: Record | UnsetType = UNSET
    fields: Fields | UnsetType = UNSET
    link: Link | UnsetType = UNSET
    annotation: Annotation | UnsetType = UNSET
    counts: Counts | UnsetType = UNSET
    #: The entities that the memory is about.
    entities: tuple[UUID, ...] | UnsetType = UNSET
    #: Of an event of an entity (its id stands as memory_id): what it was merged into.
    merged_into: UUID | UnsetType | None = UNSET
    evidence: Evidence | UnsetType = UNSET


class MemoryEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One change. `before` and `after` are None for what has been deleted since."""

    id: UUID
    memory_id: UUID
    kind: Kind
    actor: Actor
    turn_id: UUID | None
    at: datetime
    before: State | None
    after: State | None
    step: UUID
    #: The step that took it back.
    undone_by: UUID | None = None


_SELECT = (
    "select id, memory_id, kind, actor, turn_id, at, before::text, after::text, step, undone_by "
    "from memory_events where user_id = $1 "
)


async def write(tx: Tx, user_id: UUID, events: Sequence[MemoryEvent]) -> None:
    """Write events; their ids rise in the order of what they tell."""
    await tx.many(
        "insert into memory_events "
        "(id, user_id, memory_id, kind, actor, turn_id, at, before, after, step) "
        "values ($1, $2, $3, $4, $5, $6, $7, $8::jsonb, $9::jsonb, $10)",
        [
            (e.id, user_id, e.memory_id, e.kind, e.actor, e.turn_id, e.at, _json(e.before),
             _json(e.after), e.step)
            for e in events
        ],
    )  # fmt: skip


async def of_memory(tx: Tx, user_id: UUID, memory_id: UUID) -> list[MemoryEvent]:
    """All events of a memory, oldest first; also of one that is gone."""
    rows = await tx.fetch(_SELECT + "and memory_id = $2 order by id", user_id, memory_id)
    return [_event(row) for row in rows]


async def get(tx: Tx, user_id: UUID, event_id: UUID) -> MemoryEvent:
    """Raises NotFound."""
    row = await tx.row(_SELECT + "and id = $2", user_id, event_id)
    if row is None:
        raise NotFound("There is no such event.")
    return _event(row)


async def of_step(tx: Tx, user_id: UUID, step: UUID) -> list[MemoryEvent]:
    """The events of a step, in the order in which they happened."""
    rows = await tx.fetch(_SELECT + "and step = $2 order by id", user_id, step)
    return [_event(row) for row in rows]


async def happened(tx: Tx, user_id: UUID, memory_id: UUID, kind: Kind, turn_id: UUID) -> bool:
    """Whether a turn has done this to a memory."""
    found: bool = await tx.value(
        "select exists (select from memory_events "
        "where user_id = $1 and memory_id = $2 and kind = $3 and turn_id = $4)",
        user_id, memory_id, kind, turn_id,
    )  # fmt: skip
    return found


async def mark_undone(tx: Tx, user_id: UUID, step: UUID, by: UUID) -> None:
    """Note that the step `by` took `step` back."""
    await tx.execute(
        "update memory_events set undone_by = $3 where user_id = $1 and step = $2",
        user_id, step, by,
    )  # fmt: skip


async def unmark_undone(tx: Tx, user_id: UUID, by: UUID) -> None:
    """Note that what the step `by` took back stands again."""
    await tx.execute(
        "update memory_events set undone_by = null where user_id = $1 and undone_by = $2 ",
        user_id, by,
    )  # fmt: skip


async def forget_words(tx: Tx, user_id: UUID, memory_id: UUID) -> None:
    """Take a memory's words out of every event, its own and those of links to it."""
    await tx.execute(
        "update memory_events set before = null, after = null "
        "where user_id = $1 and memory_id = $2",
        user_id, memory_id,
    )  # fmt: skip
    await tx.execute(
        "update memory_events set before = case when before ? 'link' then null else before end, "
        "after = case when after ? 'link' then null else after end "
        "where user_id = $1 and (before -> 'link' ->> 'to_id' = $2::text "
        "or after -> 'link' ->> 'to_id' = $2::text)",
        user_id, str(memory_id),
    )  # fmt: skip


async def gone_made_of(tx: Tx, user_id: UUID, memory_id: UUID) -> list[UUID]:
    """The memories that this one was once merged into and that are there no more."""
    rows = await tx.fetch(
        "select distinct e.memory_id from memory_events e where e.user_id = $1 "
        "and coalesce(e.after, e.before) -> 'record' -> 'source_memories' ? $2 "
        "and not exists (select from memories m where m.id = e.memory_id)",
        user_id, str(memory_id),
    )  # fmt: skip
    return [row["memory_id"] for row in rows]


def _json(state: State | None) -> str | None:
    return None if state is None else msgspec.json.encode(state).decode()


def _event(row: object) -> MemoryEvent:
    fields = dict(row)  # type: ignore[call-overload]
    for name in ("before", "after"):
        fields[name] = msgspec.json.decode(fields[name], type=State) if fields[name] else None
    return MemoryEvent(**fields)
