"""How an answer came about, as it is written down with its turn: names, ids and figures. Of words
only those that the Subcortex made itself; texts are found by their ids, as long as they are there.
"""

from __future__ import annotations

from uuid import UUID

import msgspec

from mira.messages.subcortex import Complexity, Fallback


class SubcortexAccount(msgspec.Struct, frozen=True, kw_only=True):
    """What the Subcortex made of the message. `answer` is its model's own text."""

    phrases: tuple[str, ...]
    entities: tuple[str, ...]
    retained: tuple[UUID, ...]
    complexity: Complexity
    fallback: Fallback | None
    latency_ms: float
    answer: str


class ShownMemoryAccount(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that the model was shown. `found_by`: retained, search or reply."""

    id: UUID
    short_id: str
    found_by: str
    score: float
    importance: float
    linked: tuple[UUID, ...]


class ShownPassageAccount(msgspec.Struct, frozen=True, kw_only=True):
    """A message of the history that the model was shown."""

    message_id: UUID
    score: float


class DroppedAccount(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was found and not shown."""

    id: UUID
    why: str


class SectionAccount(msgspec.Struct, frozen=True, kw_only=True):
    """A section of the prompt and about how many tokens it took; `error` if it was left out."""

    name: str
    placement: str
    tokens: int
    error: str | None = None


class TurnAccount(msgspec.Struct, frozen=True, kw_only=True):
    """How one answer came about.

    `speculative`: the message itself was searched, since nothing better came in time. `failed`
    names parts of recall that were left out, each with the code of its error; `recall_ms` says how
    long each took. `cuts`: how often the prompt had to be made smaller.
    """

    effort: str
    cuts: int
    tokens_estimated: int
    speculative: bool
    subcortex: SubcortexAccount | None = None
    memories: tuple[ShownMemoryAccount, ...] = ()
    passages: tuple[ShownPassageAccount, ...] = ()
    dropped: tuple[DroppedAccount, ...] = ()
    searches: tuple[UUID, ...] = ()
    failed: dict[str, str] = {}
    recall_ms: dict[str, float] = {}
    sections: tuple[SectionAccount, ...] = ()
    #: What has changed in the cached part of the prompt since the last one.
    missed: tuple[str, ...] = ()
