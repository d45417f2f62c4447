"""What the keeper of a user's memory is told to do. All but CatchUp are durable."""

from __future__ import annotations

from uuid import UUID

from mira.messages.base import Message


class ExtractSegment(Message, frozen=True, kw_only=True):
    """Store what a segment tells of the user. `now`: without waiting for a batch."""

    segment_id: UUID
    now: bool = False


class SummariseSegment(Message, frozen=True, kw_only=True):
    """Write down what a segment that has ended was. The door is told by SummaryMade."""

    segment_id: UUID
    #: How often models have failed at it before this message was written.
    failed: int = 0


class RecheckDrift(Message, frozen=True, kw_only=True):
    """Hold the summary that was not looked at for longest against its segment once more."""


class CompressSegment(Message, frozen=True, kw_only=True):
    """Compress the older part of an open segment into a brief. The door is told by BriefMade."""

    segment_id: UUID
    #: Turns up to and with this one belong to that part.
    through_seq: int


class PollBatch(Message, frozen=True, kw_only=True):
    """See how a batch of extractions stands: hand it over, ask for it, read its results."""

    batch_id: UUID
    #: How often it has been asked for.
    polls: int = 0


class LinkMemories(Message, frozen=True, kw_only=True):
    """Look once at memories that are new: link them, merge them, or leave them."""


class CountUse(Message, frozen=True, kw_only=True):
    """Count which memories the answer of a turn has used."""

    turn_id: UUID


class RollOverUseDay(Message, frozen=True, kw_only=True):
    """A use-day has begun: score anew, forget, and begin what is due."""

    ordinal: int


class RefreshDated(Message, frozen=True, kw_only=True):
    """A day of the calendar has passed: score memories with a date near to it anew."""


class Consolidate(Message, frozen=True, kw_only=True):
    """Merge memories that say nearly the same, if it is due."""


class ReviewFloor(Message, frozen=True, kw_only=True):
    """Look at memories that are about to be archived, if it is due."""


class MergeEntities(Message, frozen=True, kw_only=True):
    """Merge entities that are one under several names, if it is due."""


class Reembed(Message, frozen=True, kw_only=True):
    """Give vectors to what has none, and move to the current model what has those of another."""


class CatchUp(Message, frozen=True, kw_only=True):
    """Look for work that was left behind, or has fallen due. Told when turns end and days begin;
    not durable, since what it looks at is."""

    #: A use-day has begun: whenever the last look was.
    new_day: bool = False
