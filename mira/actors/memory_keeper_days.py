"""The turn of a use-day, the days of the calendar, and what was left behind.

Whatever is due is begun by a message with a key: begun twice it is still done once.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from mira.actors.memory_keeper_extraction import STUCK
from mira.actors.memory_keeper_parts import (
    CARE,
    DATED,
    DAYS,
    EXTRACTION,
    LINKS,
    SUMMARIES,
    VECTORS,
    KeeperParts,
    Step,
    batch_lane,
    keeper_of,
    late_lane,
)
from mira.actors.runtime.actor import Context
from mira.errors import EmbedderUnavailable
from mira.memory import forgetting, reembedding
from mira.memory.encoding import ready
from mira.memory.usage import Usage
from mira.messages.base import Message
from mira.messages.memory import (
    Consolidate,
    ExtractSegment,
    LinkMemories,
    MergeEntities,
    PollBatch,
    Reembed,
    RefreshDated,
    ReviewFloor,
    RollOverUseDay,
    SummariseSegment,
)
from mira.store import (
    batches,
    extraction,
    memories,
    memory_jobs,
    memory_scores,
    summaries,
    traces,
)
from mira.store.database import Tx
from mira.store.memory_jobs import Job
from mira.telemetry import logger

log = logger("keeper")

_CARE: dict[Job, Message] = {
    Job.CONSOLIDATION: Consolidate(),
    Job.FLOOR_REVIEW: ReviewFloor(),
    Job.ENTITY_MERGE: MergeEntities(),
}
#: Memories archived in one transaction.
FORGOTTEN_AT_ONCE = 100
#: Segments begun by one look.
SEGMENTS = 20
#: Steps of giving vectors before others get a turn.
PIECES = 200


class Days:
    """Keeps one user's memories up with the days."""

    def __init__(self, parts: KeeperParts, user_id: UUID) -> None:
        self._parts = parts
        self._user_id = user_id

    async def roll_over(self, ctx: Context, message: RollOverUseDay) -> None:
        """Score anew, forget, begin what is due. Once a use-day; more often changes nothing."""
        parts, user_id = self._parts, self._user_id
        async with parts.database.user(user_id) as tx:
            changed = await forgetting.recalculate(tx, user_id, parts.clock.now())
        parts.reached(Step.SCORED)
        forgotten = 0
        while True:
            async with parts.database.user(user_id) as tx:
                gone = await forgetting.forget(parts.steps, tx, user_id, limit=FORGOTTEN_AT_ONCE)
            forgotten += len(gone)
            if len(gone) < FORGOTTEN_AT_ONCE:
                break
        async with parts.database.user(user_id) as tx:
            now, use_day = parts.clock.now(), await memories.use_days(tx, user_id)
            await traces.thin(tx, user_id, now)
            for job, begin in _CARE.items():
                if (await memory_jobs.last_run(tx, user_id, job)).due(job, use_day):
                    await self._tell(ctx, tx, begin, lane=CARE, key=job.value)
            await self._left_behind(ctx, tx, new_day=True)
            await self._unless_waiting(ctx, tx, [(VECTORS, VECTORS, Reembed())])
            await self._next_day(ctx, tx)
            await memory_jobs.ran(tx, user_id, Job.ROLL_OVER, use_day, now)
            await ctx.done(tx)
        log.info("use_day_rolled_over", use_day=use_day, scored=changed, forgotten=forgotten)

    async def count_use(self, turn_id: UUID) -> None:
        """Count what the answer of a turn has used. Done again, it changes nothing."""
        parts = self._parts
        counted = await Usage(parts.database, parts.encoders, parts.clock).count(
            self._user_id, turn_id
        )
        log.info("use_counted", turn_id=str(turn_id), used=len(counted))

    async def refresh_dated(self, ctx: Context, message: RefreshDated) -> None:
        """Score what the calendar alone changes; once a day, as long as there is any."""
        parts, user_id = self._parts, self._user_id
        async with parts.database.user(user_id) as tx:
            await forgetting.recalculate(tx, user_id, parts.clock.now(), dated=True)
            await self._next_day(ctx, tx)

    async def _next_day(self, ctx: Context, tx: Tx) -> None:
        now = self._parts.clock.now()
        if await memory_jobs.has_dated(tx, self._user_id, now):
            await ctx.tell_durable(
                tx, keeper_of(self._user_id), RefreshDated(),
                at=now + timedelta(days=1), lane=DATED, key=DATED,
            )  # fmt: skip

    async def reembed(self, ctx: Context) -> None:
        """Give vectors to what has none of the current model, a piece at a time.

        Raises EmbedderUnavailable while the model is not there.
        """
        parts, user_id = self._parts, self._user_id
        if parts.encoders.current is None:
            return
        if ready(parts.encoders) is None:
            raise EmbedderUnavailable("Vectors wait for the embedding model.")
        for _ in range(PIECES):
            if not await reembedding.step(parts.steps, user_id):
                return
        async with parts.database.user(user_id) as tx:
            # In place of this one, which is thereby done.
            await self._tell(ctx, tx, Reembed(), lane=VECTORS, key=VECTORS)

    async def catch_up(self, ctx: Context) -> None:
        """Begin what was left behind: by a process that ended, by a message that was buried, by
        whoever stores memories without telling the keeper."""
        user_id = self._user_id
        async with self._parts.database.user(user_id) as tx:
            use_day = await memories.use_days(tx, user_id)
            last = await memory_jobs.last_run(tx, user_id, Job.ROLL_OVER)
            if last.due(Job.ROLL_OVER, use_day):
                await self._unless_waiting(ctx, tx, [(DAYS, DAYS, RollOverUseDay(ordinal=use_day))])
            await self._left_behind(ctx, tx)
            if user_id not in self._parts.looked_over:
                # The model may be another one since this process began.
                await self._unless_waiting(ctx, tx, [(VECTORS, VECTORS, Reembed())])
        self._parts.looked_over.add(user_id)

    async def _left_behind(self, ctx: Context, tx: Tx, *, new_day: bool = False) -> None:
        """Tell what nobody works on. What has failed again and again is tried once a day."""
        user_id = self._user_id
        below = 2**31 - 1 if new_day else STUCK
        work: list[tuple[str, str, Message]] = [
            (EXTRACTION, str(segment_id), ExtractSegment(segment_id=segment_id))
            for segment_id in await extraction.unextracted(tx, user_id, below=below, limit=SEGMENTS)
        ]
        work += [
            (batch_lane(batch_id), "poll", PollBatch(batch_id=batch_id))
            for batch_id in await batches.open_ones(tx, user_id)
        ]
        work += await self._untold(tx)
        failed = await memory_jobs.last_run(tx, user_id, Job.LINKS_FAILED)
        today = await memories.use_days(tx, user_id)
        try_links = new_day or failed.at is None or failed.use_day < today
        if try_links and await memory_scores.not_integrated(tx, user_id, limit=1):
            work.append((LINKS, LINKS, LinkMemories()))
        await self._unless_waiting(ctx, tx, work)

    async def _untold(self, tx: Tx) -> list[tuple[str, str, Message]]:
        """Segments that are to be summarised, without those that wait for another day."""
        found = await summaries.unfinished(
            tx, self._user_id, able=self._parts.tells(), limit=SEGMENTS
        )
        late = await memory_jobs.waiting_in(
            tx, keeper_of(self._user_id), [(late_lane(one), str(one)) for one in found]
        )
        return [
            (SUMMARIES, str(one), SummariseSegment(segment_id=one))
            for one in found
            if (late_lane(one), str(one)) not in late
        ]

    async def _unless_waiting(
        self, ctx: Context, tx: Tx, work: list[tuple[str, str, Message]]
    ) -> None:
        """Tell what is not told yet: what waits or is at work is not begun anew. It begins after a
        rest, since whoever has just spoken waits for an answer."""
        if not work:
            return
        here, at = keeper_of(self._user_id), self._parts.clock.now() + self._parts.rest
        waiting = await memory_jobs.waiting_in(tx, here, [(lane, key) for lane, key, _ in work])
        for lane, key, message in work:
            if (lane, key) not in waiting:
                await self._tell(ctx, tx, message, lane=lane, key=key, at=at)

    async def _tell(
        self, ctx: Context, tx: Tx, message: Message, *, lane: str, key: str,
        at: datetime | None = None,
    ) -> None:  # fmt: skip
        await ctx.tell_durable(tx, keeper_of(self._user_id), message, lane=lane, key=key, at=at)
