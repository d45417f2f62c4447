"""What the HTTP surface is asked about memories and what it answers: one Struct for each.

A memory is named by its id or by its short id ("mem_0123abcd"). Times carry an offset from UTC.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from mira.memory.model import EntityName, LinkedMemory
from mira.memory.model import Memory as MemoryRecord
from mira.messages.content import Role, plain_text
from mira.store.entities import EntityView
from mira.store.history import HistoryMessage
from mira.store.memories import Order
from mira.store.memory_events import Actor, Annotation, Kind, LinkType, MemorySource, Status
from mira.web.memory_words import RELATIONS
from mira.web.models import Cursor, Moment
from mira.web.segment_models import Segment

#: Characters shown of a message that a memory comes from.
_QUOTED = 2000

PageLimit = Annotated[int, Meta(ge=1, le=100)]
Ref = Annotated[str, Meta(min_length=1, max_length=40)]
Fact = Annotated[str, Meta(min_length=10, max_length=4000)]
EntityType = Literal[
    "PERSON", "ORG", "GPE", "NORP", "FAC", "LOC", "PRODUCT", "EVENT", "WORK_OF_ART", "LAW",
    "LANGUAGE", "OTHER",
]  # fmt: skip


class _Model(msgspec.Struct, frozen=True, kw_only=True):
    pass


# Asked.


class MemoryPaging(_Model, frozen=True, kw_only=True):
    """`cursor` is the `next_cursor` of the page before, asked for in the same order."""

    status: Status = "active"
    order: Order = "recent"
    limit: PageLimit = 50
    cursor: Cursor | None = None


class GivenEntity(_Model, frozen=True, kw_only=True):
    """Somebody or something that a memory is about."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    type: EntityType = "OTHER"


class MemoryRequest(_Model, frozen=True, kw_only=True):
    """One fact that stands by itself."""

    text: Fact
    happens_at: Moment | None = None
    expires_at: Moment | None = None
    entities: Annotated[tuple[GivenEntity, ...], Meta(max_length=20)] = ()


class MemoryEdit(_Model, frozen=True, kw_only=True):
    """What is to change; `version` is the one that was read. Null takes a date away."""

    version: Annotated[int, Meta(ge=1, le=2**31 - 1)]
    text: Fact | UnsetType = UNSET
    happens_at: Moment | UnsetType | None = UNSET
    expires_at: Moment | UnsetType | None = UNSET


class UndoRequest(_Model, frozen=True, kw_only=True):
    """The whole step that the event belongs to is undone."""

    event_id: UUID


class LinkRequest(_Model, frozen=True, kw_only=True):
    to: Ref
    type: LinkType = "other"
    reason: Annotated[str, Meta(max_length=400)] = ""


class AnnotationRequest(_Model, frozen=True, kw_only=True):
    text: Annotated[str, Meta(min_length=1, max_length=4000)]


class MergeRequest(_Model, frozen=True, kw_only=True):
    """`text` says what all of them say; they are archived."""

    ids: Annotated[tuple[Ref, ...], Meta(min_length=2, max_length=8)]
    text: Fact


class LinksQuery(_Model, frozen=True, kw_only=True):
    """How many links away a memory may be."""

    depth: Annotated[int, Meta(ge=1, le=3)] = 1


class EntityPaging(_Model, frozen=True, kw_only=True):
    """`q` is a part of the name."""

    q: Annotated[str, Meta(max_length=200)] | None = None
    limit: PageLimit = 50
    cursor: Cursor | None = None


class EntityMerge(_Model, frozen=True, kw_only=True):
    """The `others` are from now on other names of `into`. They are of the same type."""

    into: UUID
    others: Annotated[tuple[UUID, ...], Meta(min_length=1, max_length=50)]


# Answered.


class Memory(_Model, frozen=True, kw_only=True):
    """A memory as it stands.

    `importance` (0 to 1) is as last calculated. It is true from `valid_from` until `valid_to`, if
    that is set; `superseded_by` is what took its place. `shared`: everybody's, and read-only.
    """

    id: UUID
    short_id: str
    text: str
    status: Status
    importance: float
    source: MemorySource
    happens_at: datetime | None
    expires_at: datetime | None
    valid_from: datetime
    valid_to: datetime | None
    superseded_by: UUID | None
    created_at: datetime
    updated_at: datetime
    version: int
    access_count: int
    mention_count: int
    entities: tuple[EntityName, ...]
    shared: bool

    @classmethod
    def of(cls, record: MemoryRecord, user_id: UUID) -> Memory:
        return cls(**_memory_fields(record, user_id))


class MemoryPage(_Model, frozen=True, kw_only=True):
    memories: tuple[Memory, ...]
    next_cursor: str | None


class MemoryNamed(_Model, frozen=True, kw_only=True):
    """A memory that another one speaks of."""

    id: UUID
    short_id: str
    text: str
    status: Status
    importance: float

    @classmethod
    def of(cls, record: MemoryRecord) -> MemoryNamed:
        return cls(
            id=record.id, short_id=record.short_id, text=record.text, status=record.status,
            importance=record.importance,
        )  # fmt: skip


class Quote(_Model, frozen=True, kw_only=True):
    """A message that a memory comes from, its words cut if there are many."""

    id: UUID
    turn_id: UUID
    role: Role
    text: str
    created_at: datetime

    @classmethod
    def of(cls, record: HistoryMessage) -> Quote:
        text = plain_text(record.blocks)
        return cls(
            id=record.id, turn_id=record.turn_id, role=record.role, created_at=record.created_at,
            text=text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…",
        )  # fmt: skip


class MemoryEvidence(_Model, frozen=True, kw_only=True):
    """Where a memory comes from: a segment and its messages, a turn, or memories merged into it."""

    segment: Segment | None
    turn_id: UUID | None
    messages: tuple[Quote, ...]
    memories: tuple[MemoryNamed, ...]


class Note(_Model, frozen=True, kw_only=True):
    """A remark that stands beside a memory."""

    id: UUID
    author: Literal["user", "model", "review"]
    text: str
    at: datetime

    @classmethod
    def of(cls, record: Annotation) -> Note:
        return cls(**msgspec.structs.asdict(record))


class MemoryDetail(Memory, frozen=True, kw_only=True):
    """A memory with where it comes from, what was remarked, and what took its place."""

    evidence: MemoryEvidence
    annotations: tuple[Note, ...]
    successor: MemoryNamed | None

    @classmethod
    def whole(
        cls, record: MemoryRecord, user_id: UUID, evidence: MemoryEvidence,
        annotations: list[Annotation], successor: MemoryRecord | None,
    ) -> MemoryDetail:  # fmt: skip
        return cls(
            **_memory_fields(record, user_id),
            evidence=evidence,
            annotations=tuple(Note.of(one) for one in annotations),
            successor=MemoryNamed.of(successor) if successor else None,
        )


class StoredMemory(_Model, frozen=True, kw_only=True):
    """What became of a new memory: it is there (created); it was known and counts for more
    (reinforced: `memory` is the one that stood); or it is there and closed others (superseding)."""

    memory: Memory
    outcome: Literal["created", "reinforced", "superseding"]


class MemoryEventView(_Model, frozen=True, kw_only=True):
    """One change. `summary` says it in a sentence; `undo` says what undoing its step would do, and
    is null where that cannot be. `before` and `after` hold what changed; null where there was
    nothing, or where the words are gone with a memory that was deleted."""

    id: UUID
    kind: Kind
    actor: Actor
    turn_id: UUID | None
    at: datetime
    step: UUID
    undone_by: UUID | None
    summary: str
    undo: str | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class MemoryHistory(_Model, frozen=True, kw_only=True):
    """Oldest first."""

    events: tuple[MemoryEventView, ...]


class UndoneStep(_Model, frozen=True, kw_only=True):
    """What an undo did; it can be undone in turn, by one of its events."""

    step: UUID
    events: tuple[MemoryEventView, ...]


class MemoryLink(_Model, frozen=True, kw_only=True):
    """A memory reached over links. `outgoing`: the last link leads to it; else it comes from it.

    `words` say how what is one link before it stands to it.
    """

    memory: MemoryNamed
    type: LinkType
    words: str
    reason: str
    confidence: float
    created_at: datetime
    outgoing: bool
    depth: int

    @classmethod
    def of(cls, linked: LinkedMemory) -> MemoryLink:
        link, outgoing = linked.link, linked.direction == "out"
        return cls(
            memory=MemoryNamed.of(linked.memory), type=link.type,
            words=RELATIONS[link.type][0 if outgoing else 1], reason=link.reason,
            confidence=link.confidence, created_at=link.created_at, outgoing=outgoing,
            depth=linked.depth,
        )  # fmt: skip


class MemoryLinks(_Model, frozen=True, kw_only=True):
    links: tuple[MemoryLink, ...]


class ScoreTerm(_Model, frozen=True, kw_only=True):
    """One term of an importance: its value, the formula in words, and the numbers put into it."""

    name: str
    value: float
    formula: str
    numbers: dict[str, float]


class MemoryExplanation(_Model, frozen=True, kw_only=True):
    """Why a memory matters as much as it does, reckoned now: each term, the last being the score.

    `use_days`: on how many days the user has spoken; `age` and `idle` in the terms count them.
    """

    memory_id: UUID
    short_id: str
    score: float
    use_days: int
    terms: tuple[ScoreTerm, ...]


class Entity(_Model, frozen=True, kw_only=True):
    """Somebody or something; `memories` counts the active ones that are about it."""

    id: UUID
    name: str
    type: str
    memories: int
    created_at: datetime

    @classmethod
    def of(cls, record: EntityView) -> Entity:
        return cls(
            id=record.id, name=record.name, type=record.type, memories=record.memories,
            created_at=record.created_at,
        )  # fmt: skip


class EntityPage(_Model, frozen=True, kw_only=True):
    entities: tuple[Entity, ...]
    next_cursor: str | None


def _memory_fields(record: MemoryRecord, user_id: UUID) -> dict[str, Any]:
    names = (f.name for f in msgspec.structs.fields(Memory) if f.name != "shared")
    fields = {name: getattr(record, name) for name in names}
    return {**fields, "shared": record.user_id != user_id}
