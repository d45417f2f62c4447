"""The keeper of a user's memory: what is learned from conversations, and what becomes of it.

The actor only steers. Everything that takes long (models, bulk queries) is a job beside its
mailbox; a durable message is done when its job has ended. It remembers nothing: all state stands
in Postgres, and every handler may be called again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from uuid import UUID

from mira.actors.memory_keeper_batches import ExtractionBatches
from mira.actors.memory_keeper_briefs import Briefs
from mira.actors.memory_keeper_care import Care
from mira.actors.memory_keeper_days import Days
from mira.actors.memory_keeper_extraction import SegmentExtraction
from mira.actors.memory_keeper_links import Linking
from mira.actors.memory_keeper_parts import KeeperParts
from mira.actors.memory_keeper_summaries import Summaries
from mira.actors.runtime.actor import Actor, Context
from mira.errors import MiraError
from mira.messages.base import Message
from mira.messages.memory import (
    CatchUp,
    CompressSegment,
    Consolidate,
    CountUse,
    ExtractSegment,
    LinkMemories,
    MergeEntities,
    PollBatch,
    RecheckDrift,
    Reembed,
    RefreshDated,
    ReviewFloor,
    RollOverUseDay,
    SummariseSegment,
)
from mira.telemetry import logger

log = logger("keeper")

#: Kinds of jobs, each bounded by itself: those that wait for a model or a provider, and those
#: that only ask the database.
ASKING, COUNTING = "memory_questions", "memory_upkeep"
_FOR_A_MODEL = (
    CompressSegment,
    ExtractSegment,
    LinkMemories,
    Consolidate,
    ReviewFloor,
    MergeEntities,
)
#: Seconds between two looks for what was left behind.
LOOK_EVERY = 300.0


class MemoryKeeper(Actor):
    """One user's keeper."""

    __slots__ = (
        "_able",
        "_batches",
        "_briefs",
        "_care",
        "_days",
        "_extraction",
        "_linking",
        "_looked_at",
        "_monotonic",
        "_summaries",
    )

    def __init__(self, parts: KeeperParts, user_id: UUID) -> None:
        self._monotonic = parts.clock.monotonic
        self._able = parts.able
        self._extraction = SegmentExtraction(parts, user_id)
        self._batches = ExtractionBatches(parts, user_id, self._extraction)
        self._linking = Linking(parts, user_id)
        self._care = Care(parts, user_id)
        self._days = Days(parts, user_id)
        self._summaries = Summaries(parts, user_id)
        self._briefs = Briefs(parts, user_id)
        self._looked_at: float | None = None

    async def receive(self, message: Message, ctx: Context) -> object:
        if isinstance(message, _FOR_A_MODEL) and not self._able():
            # What it is about stands in Postgres, and is found again.
            log.info("no_model_for_memory", message=type(message).__name__)
            return None
        match message:
            case ExtractSegment():
                _begin(ctx, ASKING, lambda: self._extraction.extract(ctx, message))
            case CompressSegment():
                _begin(ctx, ASKING, lambda: self._briefs.compress(ctx, message))
            case SummariseSegment():
                # Not left to a better model: the segment would stay open for ever.
                _begin(ctx, ASKING, lambda: self._summaries.summarise(ctx, message))
            case RecheckDrift():
                _begin(ctx, COUNTING, lambda: self._summaries.recheck(ctx))
            case PollBatch():
                _begin(ctx, ASKING, lambda: self._batches.poll(ctx, message))
            case LinkMemories():
                _begin(ctx, ASKING, lambda: self._linking.look(ctx, message))
            case Consolidate():
                _begin(ctx, ASKING, lambda: self._care.consolidate(ctx))
            case ReviewFloor():
                _begin(ctx, ASKING, lambda: self._care.review_floor(ctx))
            case MergeEntities():
                _begin(ctx, ASKING, lambda: self._care.merge_entities(ctx))
            case CountUse(turn_id=turn_id):
                _begin(ctx, COUNTING, lambda: self._days.count_use(turn_id))
            case RollOverUseDay():
                _begin(ctx, COUNTING, lambda: self._days.roll_over(ctx, message))
            case RefreshDated():
                _begin(ctx, COUNTING, lambda: self._days.refresh_dated(ctx, message))
            case Reembed():
                _begin(ctx, COUNTING, lambda: self._days.reembed(ctx))
            case CatchUp(new_day=new_day):
                self._look_around(ctx, new_day)
            case _:
                raise NotImplementedError(type(message).__name__)
        return None

    def _look_around(self, ctx: Context, new_day: bool) -> None:
        """Look for what was left behind, now and then, and with each new day."""
        now = self._monotonic()
        recently = self._looked_at is not None and now - self._looked_at < LOOK_EVERY
        if recently and not new_day:
            return
        self._looked_at = now

        async def look() -> None:
            try:
                await self._days.catch_up(ctx)
            except MiraError as error:
                # Nobody waits for it, and the next look will find the same.
                log.warning("catch_up_failed", code=error.code)

        ctx.job(COUNTING, look)


def _begin(ctx: Context, kind: str, work: Callable[[], Awaitable[None]]) -> None:
    """Do the work of a durable message beside the mailbox; the message ends with it."""
    ctx.job(kind, work, take_reply=True)
