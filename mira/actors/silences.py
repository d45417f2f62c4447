"""Segments as the door of a conversation ends them: by silence, by the user, step by step.

    silence, or the user      active → collapsing, and the keeper is told to write the summary
    the summary is stored     collapsing → collapsed, and the keeper is told to extract memories

Each step is one transaction with the durable message that brings the next. Whoever speaks in
between opens the next segment and is answered at once.
"""

from __future__ import annotations

from uuid import UUID

from mira.actors.memory_keeper_parts import EXTRACTION, SUMMARIES, keeper_of
from mira.actors.parts import Parts
from mira.actors.runtime.actor import Context
from mira.errors import NotFound
from mira.messages.memory import ExtractSegment, SummariseSegment
from mira.messages.segment import (
    ManifestChanged,
    SegmentCollapsed,
    SegmentDue,
    SegmentIdle,
    SummaryMade,
    SummaryReady,
)
from mira.store import segments
from mira.store.turns import Fence
from mira.telemetry import logger

log = logger("segments")

#: Lane and key of the timer of a conversation's open segment (as written by watch_silence).
SILENCE = "silence"


class Silences:
    """The ends of one conversation's segments. In the mailbox of its door only."""

    def __init__(self, parts: Parts, user_id: UUID) -> None:
        self._parts = parts
        self._user_id = user_id

    async def due(self, ctx: Context, fence: Fence, message: SegmentDue) -> bool:
        """The timer has rung. Whether silence has indeed ended the segment: if somebody has spoken
        since, the timer is set anew."""
        return await self._begin(ctx, fence, message.segment_id) is not None

    async def collapse(self, ctx: Context, fence: Fence) -> UUID:
        """End the open segment now, paused or not. Raises NotFound if none is open."""
        ended = await self._begin(ctx, fence, None, forced=True)
        if ended is None:
            raise NotFound("There is no open segment: nothing was said since the last one ended.")
        return ended

    async def pause(self, fence: Fence) -> UUID:
        """Let no silence end the open segment until somebody speaks. Raises NotFound."""
        async with self._parts.database.user(self._user_id) as tx:
            return _there(await segments.pause(tx, self._user_id, fence))

    async def resume(self, fence: Fence) -> UUID:
        """End the pause of the open segment. Raises NotFound."""
        parts = self._parts
        async with parts.database.user(self._user_id) as tx:
            return _there(
                await segments.resume(
                    tx, self._user_id, fence, parts.clock.now(), parts.segment_idle
                )
            )

    async def _begin(
        self, ctx: Context, fence: Fence, segment_id: UUID | None, *, forced: bool = False
    ) -> UUID | None:
        parts, user_id, now = self._parts, self._user_id, self._parts.clock.now()
        async with parts.database.user(user_id) as tx:
            begun = await segments.begin_collapse(
                tx, user_id, fence, segment_id, now, parts.segment_idle, forced=forced
            )
            if begun.outcome == "early":
                assert begun.segment_id is not None
                await ctx.tell_durable(
                    tx, ctx.address, SegmentDue(segment_id=begun.segment_id),
                    at=begun.due, lane=SILENCE, key=SILENCE,
                )  # fmt: skip
                return None
            if begun.segment_id is not None:
                await ctx.tell_durable(
                    tx, keeper_of(user_id), SummariseSegment(segment_id=begun.segment_id),
                    lane=SUMMARIES, key=str(begun.segment_id),
                )  # fmt: skip
            if ctx.durable is not None:
                await ctx.done(tx)
        if begun.segment_id is not None:
            log.info("segment_ended", segment=str(begun.segment_id), by_user=forced)
            if not forced:
                await ctx.publish(SegmentIdle(user_id=user_id, segment_id=begun.segment_id, at=now))
            await ctx.publish(ManifestChanged(user_id=user_id, at=now))
        return begun.segment_id

    async def summarised(self, ctx: Context, fence: Fence, message: SummaryMade) -> None:
        """The summary is stored: what is to be remembered of the segment comes next. Published
        before the message counts as done, so that nobody misses it. Of a segment that is not
        there nothing is said."""
        parts, user_id, now = self._parts, self._user_id, self._parts.clock.now()
        segment_id = message.segment_id
        async with parts.database.user(user_id) as tx:
            if await segments.end_collapse(tx, user_id, fence, segment_id, now):
                await ctx.tell_durable(
                    tx, keeper_of(user_id), ExtractSegment(segment_id=segment_id),
                    lane=EXTRACTION, key=str(segment_id),
                )  # fmt: skip
            elif not await segments.exists(tx, user_id, segment_id):
                log.warning("no_such_segment", segment=str(segment_id))
                return
        await ctx.publish(SummaryReady(user_id=user_id, segment_id=segment_id, at=now))
        await ctx.publish(ManifestChanged(user_id=user_id, at=now))
        await ctx.publish(SegmentCollapsed(user_id=user_id, segment_id=segment_id, at=now))
        log.info("segment_collapsed", segment=str(segment_id))


def _there(segment_id: UUID | None) -> UUID:
    if segment_id is None:
        raise NotFound("There is no open segment: nothing was said since the last one ended.")
    return segment_id
