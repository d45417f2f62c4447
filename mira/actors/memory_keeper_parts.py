"""What the keeper of memories works with, wired by the composition root."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mira.actors.memory_keeper_questions import Questions
from mira.clock import Clock
from mira.ids import Ids
from mira.llm.batch import Batches
from mira.memory.encoding import Encoders
from mira.memory.lived.drift import Recogniser
from mira.memory.memories import Memories
from mira.memory.steps import Steps
from mira.messages.base import Address
from mira.store.database import Database

KIND = "memory_keeper"

#: Lanes of durable messages: in each, one at a time and in order.
EXTRACTION, LINKS, CARE, DAYS, DATED, VECTORS, SUMMARIES, BRIEFS, USE = (
    "extraction", "links", "care", "days", "dated", "vectors", "summaries", "briefs", "use",
)  # fmt: skip


def batch_lane(batch_id: UUID) -> str:
    """A batch waits for hours; no other waits behind it."""
    return f"batch/{batch_id}"


def late_lane(segment_id: UUID) -> str:
    """A segment that no model could tell waits by itself; later ones are told meanwhile."""
    return f"summaries/{segment_id}"


def keeper_of(user_id: UUID) -> Address:
    """The address of a user's keeper."""
    return Address(KIND, str(user_id))


class Step(StrEnum):
    """Between which two steps of its work a keeper is. See KeeperParts.reached."""

    PLANNED = "planned"
    ANSWERED = "answered"
    PREPARED = "prepared"
    STORED = "stored"
    INTENDED = "intended"
    SUBMITTING = "submitting"
    CREATED = "created"
    SUBMITTED = "submitted"
    RESULT = "result"
    LINKED = "linked"
    MERGED = "merged"
    REVIEWED = "reviewed"
    SCORED = "scored"
    NOTED = "noted"
    TOLD = "told"
    CHECKED = "checked"
    WRITTEN = "written"


#: Pauses between polls of a batch: the first, doubled each time up to the longest. Seconds.
FIRST_PAUSE, LONGEST_PAUSE = 30.0, 900.0


def growing_pause(polls: int) -> timedelta:
    """How long to wait before the next poll of a batch."""
    return timedelta(seconds=min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(polls, 16)))


def _pass(_step: Step) -> None:
    """Nothing."""


@dataclass(frozen=True)
class KeeperParts:
    """The keeper's surroundings."""

    database: Database
    clock: Clock
    ids: Ids
    memories: Memories
    steps: Steps
    encoders: Encoders
    questions: Questions
    #: The model that tells what a segment was.
    telling: Questions
    #: The batches that extractions may be handed over to; None where there are none.
    batches: Callable[[], Batches | None]
    #: Whether there is a model to which a memory may be entrusted; until then questions wait.
    able: Callable[[], bool] = lambda: True
    #: Whether `telling` has one that can tell; what another tells is told anew later.
    tells: Callable[[], bool] = lambda: True
    #: What finds names where a summary is held against its segment.
    recogniser: Recogniser | None = None
    #: Told between two steps, at once and in the way of the work.
    reached: Callable[[Step], None] = _pass
    pause: Callable[[int], timedelta] = growing_pause
    #: How long what was left behind, and what a new day brings, waits after whoever speaks: not in
    #: the way of the answer that they wait for.
    rest: timedelta = timedelta()
    #: Users whose vectors this process has looked over since it began.
    looked_over: set[UUID] = field(default_factory=set)


def zone_of(timezone: str) -> ZoneInfo:
    """The user's time zone; UTC for one that only the database knows."""
    try:
        return ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")
