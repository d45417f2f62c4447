"""What a prompt is made of: everything that the trinkets read, gathered before composing.

Texts come as they are stored. Whoever renders them bounds them and takes our tags out of them.
Times are aware; each is shown in the user's zone.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import msgspec

from mira.messages.content import Role, Shown
from mira.prompt.turn import Turn

#: Summaries shown in full: so many by default, and never more than the ceiling.
SUMMARIES = 4
SUMMARIES_CEILING = 5


class SummaryView(msgspec.Struct, frozen=True, kw_only=True):
    """The summary of a segment that has collapsed. `complexity` is 0.5, 1, 2 or 3."""

    segment_id: UUID
    title: str
    trace: str
    precis: str
    complexity: float
    started_at: datetime
    ended_at: datetime


class ManifestRow(msgspec.Struct, frozen=True, kw_only=True):
    """A segment in the list of segments. No `ended_at`: it is the active one."""

    title: str | None
    started_at: datetime
    ended_at: datetime | None


class LinkedMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that is shown beside another. `relation` says how it belongs there."""

    short_id: str
    text: str
    relation: str = ""


class SurfacedMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that was found for this turn, or kept from an earlier one (`retained`)."""

    short_id: str
    text: str
    importance: float
    created_at: datetime
    superseded: bool = False
    retained: bool = False
    linked: tuple[LinkedMemory, ...] = ()


class SurfacedPassage(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was said earlier in the conversation, word for word, by USER or ASSISTANT."""

    who: Role
    said_at: datetime
    text: str


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """What one prompt is made of.

    `words` is what the user says now, or () where the turn is not begun by the user, and `outcome`
    then says what it is about. What is None or empty is not in the prompt.
    """

    user: str
    timezone: str
    now: datetime
    last_message_at: datetime | None
    #: Turns of this segment, oldest first, without the one that is being composed.
    turns: tuple[Turn, ...]
    words: tuple[Shown, ...]
    outcome: str | None = None

    #: Summaries of earlier segments, newest first.
    earlier: tuple[SummaryView, ...] = ()
    #: The last turns of the segment before this one, oldest first.
    continuity: tuple[Turn, ...] = ()
    #: When the segment before this one ended.
    boundary_end: datetime | None = None
    #: All segments or the newest of them, in any order.
    manifest: tuple[ManifestRow, ...] = ()
    #: What stands for the turns of this segment that are in `turns` no more.
    brief: str | None = None

    #: Best first.
    memories: tuple[SurfacedMemory, ...] = ()
    passages: tuple[SurfacedPassage, ...] = ()

    #: How the user wants to be worked with, and who the user is, as learned.
    directives: str | None = None
    portrait: str | None = None

    #: Whether a few example turns are shown.
    primer: bool = False
    #: Summaries shown in full, 1 … SUMMARIES_CEILING.
    max_summaries: int = SUMMARIES
    #: Whether the model reads little, or slowly: the short form of everything.
    compact: bool = False
    #: The share of its bounds that what is said now may take: less than 1 where the prompt proved
    #: too long for the model. Turns that have ended are cut by `Turn.of`.
    share: float = 1.0
