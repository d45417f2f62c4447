"""What the HTTP surface answers to searches: what was found, where it stands, and why."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from mira.memory.query import Intent
from mira.messages.content import Role
from mira.store.memory_events import LinkType, Status
from mira.web.memory_models import Memory, MemoryLink, Ref
from mira.web.models import Moment

SearchSource = Literal["memories", "messages", "all"]
Words = Annotated[str, Meta(min_length=1, max_length=2000)]


class _Model(msgspec.Struct, frozen=True, kw_only=True):
    pass


# Asked.


class SearchQuery(_Model, frozen=True, kw_only=True):
    """`source`: memories, messages of the conversation, or both. `as_of` asks for what was true
    then."""

    q: Words
    source: SearchSource = "memories"
    intent: Intent = "recall"
    limit: Annotated[int, Meta(ge=1, le=50)] = 10
    as_of: Moment | None = None


class GraphQuery(_Model, frozen=True, kw_only=True):
    """`around` is a memory; without it the graph is that of the memories that matter most."""

    around: Ref | None = None
    limit: Annotated[int, Meta(ge=1, le=200)] = 60


# Answered.


class FoundMessage(_Model, frozen=True, kw_only=True):
    """A message of the conversation that was found."""

    message_id: UUID
    turn_id: UUID
    segment_id: UUID | None
    role: Role
    text: str
    said_at: datetime


class SearchHit(_Model, frozen=True, kw_only=True):
    """Something found: a memory or a message.

    `score` orders the hits of one source. `lanes` says how strongly each way of searching found
    it; a lane that did not find it is missing. `linked` are memories that came with it.
    """

    source: Literal["memory", "message"]
    score: float
    relevance: float
    lanes: dict[str, float]
    memory: Memory | None = None
    message: FoundMessage | None = None
    linked: tuple[MemoryLink, ...] = ()


class SearchAnswer(_Model, frozen=True, kw_only=True):
    """Best first; of both sources by turns."""

    hits: tuple[SearchHit, ...]


class GraphNode(_Model, frozen=True, kw_only=True):
    """A memory, or somebody or something that memories are about."""

    id: UUID
    kind: Literal["memory", "entity"]
    label: str
    #: Of a memory.
    short_id: str | None = None
    importance: float | None = None
    status: Status | None = None
    #: Of an entity.
    type: str | None = None


class GraphEdge(_Model, frozen=True, kw_only=True):
    """A link from memory to memory; or `about`, from a memory to an entity. `words` say how the
    one stands to the other."""

    from_id: UUID
    to_id: UUID
    type: LinkType | Literal["about"]
    words: str
    reason: str = ""


class MemoryGraph(_Model, frozen=True, kw_only=True):
    """Every edge leads between two of the nodes."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
