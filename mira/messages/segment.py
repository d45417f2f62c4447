"""Segments: the stretches of the one conversation between silences."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from mira.messages.base import Event, Message


class SegmentState(StrEnum):
    """`paused` is open, too, but silence does not end it."""

    ACTIVE = "active"
    PAUSED = "paused"
    COLLAPSING = "collapsing"
    COLLAPSED = "collapsed"

    @property
    def open(self) -> bool:
        return self in (SegmentState.ACTIVE, SegmentState.PAUSED)


# Commands to the door.


class SegmentDue(Message, frozen=True, kw_only=True):
    """It may have been silent for long enough. Durable: the timer of the one open segment."""

    segment_id: UUID


class SummaryMade(Message, frozen=True, kw_only=True):
    """The summary of a segment is stored. Durable."""

    segment_id: UUID


class BriefMade(Message, frozen=True, kw_only=True):
    """The older part of an open segment is compressed. Durable."""

    segment_id: UUID


class MemoriesMade(Message, frozen=True, kw_only=True):
    """So many facts of a segment are stored, as new memories or as one more mention. Durable."""

    segment_id: UUID
    count: int


class PauseSegment(Message, frozen=True, kw_only=True):
    """Let no silence end the open segment until somebody speaks. Answered with its id."""


class ResumeSegment(Message, frozen=True, kw_only=True):
    """End the pause of the open segment; silence counts from now. Answered with its id."""


class CollapseSegment(Message, frozen=True, kw_only=True):
    """End the open segment now. Answered with its id; the collapse itself goes on by itself."""


# Events, published by the door.


class SegmentOpened(Event, frozen=True, kw_only=True):
    user_id: UUID
    segment_id: UUID
    at: datetime


class SegmentIdle(Event, frozen=True, kw_only=True):
    """Silence has ended a segment; its collapse begins."""

    user_id: UUID
    segment_id: UUID
    at: datetime


class SummaryReady(Event, frozen=True, kw_only=True):
    user_id: UUID
    segment_id: UUID
    at: datetime


class MemoriesStored(Event, frozen=True, kw_only=True):
    """`count` facts that a segment tells are remembered; of a long one part by part. At least
    once."""

    user_id: UUID
    segment_id: UUID
    count: int
    at: datetime


class ManifestChanged(Event, frozen=True, kw_only=True):
    """What the list of segments in the prompt shows is out of date."""

    user_id: UUID
    at: datetime


class SegmentCollapsed(Event, frozen=True, kw_only=True):
    """All that follows from the end of a segment is done or durably on its way. At least once."""

    user_id: UUID
    segment_id: UUID
    at: datetime
