"""What goes into memory, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from mira.errors import ValidationFailed
from mira.memory.entities import TYPES, Mention, normalise
from mira.memory.terms import clean
from mira.store.entities import NewEntity
from mira.store.memories import EntityName, Memory
from mira.store.memory_events import Actor, Link, LinkType, MemoryEvent, MemorySource

__all__ = [
    "Actor", "EntityName", "Link", "LinkType", "LinkedMemory", "Memory", "MemoryEvent",
    "MemorySource", "NewMemory", "Prepared", "Ref", "Stored", "Undone", "checked_annotation",
    "checked_text", "checked_time", "named",
]  # fmt: skip

SHORTEST = 10
LONGEST = 4000
LONGEST_REASON = 400
LONGEST_NAME = 200

Ref = UUID | str
"""An id, or a short id ("mem_xxxxxxxx")."""


class NewMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A fact to be remembered. Times are aware."""

    text: str
    source: MemorySource
    entities: tuple[EntityName, ...] = ()
    happens_at: datetime | None = None
    expires_at: datetime | None = None
    #: Since when it is true; None: since now.
    valid_from: datetime | None = None
    #: The evidence.
    segment_id: UUID | None = None
    message_ids: tuple[UUID, ...] = ()
    #: Memories that this one replaces.
    supersedes: tuple[Ref, ...] = ()
    #: Memories that it has to do with, and in at most three words how.
    related: tuple[tuple[Ref, str], ...] = ()


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A memory ready to be stored: its text clean, encoded and cut into terms."""

    new: NewMemory
    text: str
    terms: Mapping[str, int]
    #: Its vector in each model.
    vectors: Mapping[str, Sequence[float]]
    entities: tuple[NewEntity, ...]


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a new memory: it is there, it was known (`memory` is the one that stood, one
    more time said), or it is there and closed others."""

    memory: Memory
    outcome: Literal["created", "reinforced", "superseding"]
    #: Undo names one of the step's events.
    event_id: UUID
    #: The memories that it closed.
    superseded: tuple[UUID, ...] = ()
    #: Refs that name no memory of this user; nothing was done about them.
    unknown: tuple[str, ...] = ()
    #: Memories that say nearly the same (cosine) and were left as they are: for a review.
    near: tuple[tuple[UUID, float], ...] = ()


class Undone(msgspec.Struct, frozen=True, kw_only=True):
    """What an undo did: its own step, which can be undone in turn, and what it changed back."""

    step: UUID
    events: tuple[MemoryEvent, ...]


class LinkedMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory reached over links."""

    memory: Memory
    link: Link
    #: Whether the last link leads to it or comes from it.
    direction: Literal["out", "in"]
    depth: int
    #: How strong the way is: the product of the links' weights.
    weight: float


def checked_text(text: str) -> str:
    """The text of a memory as it is stored. Raises ValidationFailed."""
    kept = clean(text).strip()
    if not SHORTEST <= len(kept) <= LONGEST:
        raise ValidationFailed(
            f"A memory has {SHORTEST} to {LONGEST:,} characters.",
            (("text", f"{len(kept)} characters"),),
        )
    return kept


def checked_annotation(text: str) -> str:
    """The text of an annotation as it is stored. Raises ValidationFailed."""
    kept = clean(text).strip()
    if not 1 <= len(kept) <= LONGEST:
        raise ValidationFailed(
            f"An annotation has 1 to {LONGEST:,} characters.",
            (("text", f"{len(kept)} characters"),),
        )
    return kept


def checked_time(name: str, at: datetime | None) -> datetime | None:
    """A time that can be stored. Raises ValidationFailed for one without an offset, or so near to
    the ends of time that it cannot be told in every time zone."""
    if at is None:
        return None
    if at.utcoffset() is None:
        raise ValidationFailed("Times need an offset from UTC.", ((name, "has no offset"),))
    if not 1 < at.year < 9999:
        raise ValidationFailed("Times lie in the years 2 to 9998.", ((name, "out of bounds"),))
    return at


def named(given: Sequence[EntityName], found: Sequence[Mention]) -> tuple[NewEntity, ...]:
    """The entities of a memory: those it came with, and names found in it that are not among
    those. A type that is not known is OTHER."""
    entities: dict[str, NewEntity] = {}
    pairs = [(one.name, one.type) for one in given] + [(one.name, one.type) for one in found]
    for said, kind in pairs:
        name = " ".join(clean(said).split())[:LONGEST_NAME]
        key = normalise(name)
        if key:
            known = kind if kind in TYPES else "OTHER"
            entities.setdefault(key, NewEntity(name=name, key=key, type=known))
    return tuple(entities.values())
