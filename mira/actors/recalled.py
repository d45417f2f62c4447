"""What a turn has recalled: what the model is shown, and the account of how it came about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

from mira.messages.content import Role
from mira.messages.subcortex import Considered

#: A memory is shown because it was kept, because a search found it, or because a reply is like it.
FoundBy = Literal["retained", "search", "reply"]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What there is to recall for. `turn_id` is the turn's.

    `surfaced` are the memories that were shown in the last turn: all of them may be retained.
    `replies` are the messages of the last two replies. `held` are the messages and memories that
    stand in the prompt anyway.
    """

    user_id: UUID
    turn_id: UUID
    words: str
    surfaced: tuple[UUID, ...] = ()
    replies: tuple[UUID, ...] = ()
    held: frozenset[UUID] = frozenset()


@dataclass(frozen=True, kw_only=True)
class LinkedText:
    """A memory that is shown beside another. `how` they are linked: "supersedes", "causes", …;
    `outward`: from the other to this one."""

    id: UUID
    short_id: str
    text: str
    how: str
    outward: bool


@dataclass(frozen=True, kw_only=True)
class ShownMemory:
    """A memory that is shown."""

    id: UUID
    short_id: str
    text: str
    importance: float
    created_at: datetime
    happens_at: datetime | None
    superseded: bool
    found_by: FoundBy
    score: float
    linked: tuple[LinkedText, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ShownPassage:
    """Something that was said, of the history; of a long message the part that was found."""

    message_id: UUID
    turn_seq: int
    role: Role
    said_at: datetime
    text: str
    score: float


@dataclass(frozen=True, kw_only=True)
class Recalled:
    """What a turn has recalled; retained memories first, then what is fresh, the best first."""

    memories: tuple[ShownMemory, ...] = ()
    passages: tuple[ShownPassage, ...] = ()
    #: What the Subcortex said; None if it was not asked.
    considered: Considered | None = None
    #: Whether the words of the message themselves were searched, since nothing better came.
    speculative: bool = False
    #: The searches whose traces are kept: those that were used.
    traces: tuple[UUID, ...] = ()
    #: The parts that failed, with the code of the error, and were left out.
    failed: Mapping[str, str] = field(default_factory=dict)
    #: Milliseconds that each part took.
    timings: Mapping[str, float] = field(default_factory=dict)
    #: What was found and is not shown, and why.
    dropped: tuple[tuple[UUID, str], ...] = ()

    @property
    def surfaced(self) -> tuple[UUID, ...]:
        """The memories that the next turn may retain."""
        return tuple(memory.id for memory in self.memories)
