"""The door of a conversation: its one ordered mailbox.

What belongs to the conversation changes only here, one message at a time: turns are taken in
order, run, committed with everything that belongs to them, announced, and settled before the next
is taken. What must be remembered is in Postgres; an instance can be dropped at any time.
"""

from __future__ import annotations

from functools import partial
from uuid import UUID

from mira.actors.actions import settle_action
from mira.actors.earlier import read_earlier
from mira.actors.endings import Endings, closing_event
from mira.actors.live_turns import VERBATIM
from mira.actors.memory_keeper_parts import BRIEFS, keeper_of
from mira.actors.parts import Parts, Stage
from mira.actors.runtime.actor import Actor, Context
from mira.actors.silences import Silences
from mira.actors.taking_over import Standing, take_over
from mira.actors.turn_prompt import TurnPrompt
from mira.actors.turn_run import TurnRun
from mira.actors.voice import Voice
from mira.actors.working import WorkingState
from mira.errors import DatabaseUnavailable, StaleEpoch
from mira.messages.base import Address, Message
from mira.messages.memory import CompressSegment
from mira.messages.segment import (
    BriefMade,
    CollapseSegment,
    MemoriesMade,
    MemoriesStored,
    PauseSegment,
    ResumeSegment,
    SegmentDue,
    SegmentOpened,
    SummaryMade,
)
from mira.messages.turn import (
    CancelTurn,
    SettleAction,
    TakeTurns,
    TrinketRendered,
    TurnStarted,
    TurnState,
    UseDayAdvanced,
    WorkingStateChanged,
)
from mira.store import turns
from mira.store.turns import SkippedTurn, TakenTurn
from mira.telemetry import bound, logger

log = logger("door")

KIND = "continuum"


def door_of(user_id: UUID) -> Address:
    """The address of a user's conversation."""
    return Address(KIND, str(user_id))


class Continuum(Actor):
    """One user's conversation, while somebody speaks."""

    __slots__ = (
        "_cancelled",
        "_endings",
        "_parts",
        "_running",
        "_shown",
        "_silences",
        "_standing",
        "_told",
        "_user_id",
    )

    def __init__(self, parts: Parts, user_id: UUID) -> None:
        self._parts = parts
        self._user_id = user_id
        self._endings = Endings(parts, user_id)
        self._silences = Silences(parts, user_id)
        self._standing: Standing | None = None
        self._running: TurnRun | None = None
        #: Turns to be stopped of which it was not known yet that they run.
        self._cancelled: set[UUID] = set()
        #: The sections of the last prompt, as they were.
        self._shown: dict[str, str] = {}
        #: Notices given since this instance was made.
        self._told: set[str] = set()

    def control(self, message: Message) -> None:
        """CancelTurn stops the turn if it is the one that runs, or is just being taken."""
        if not isinstance(message, CancelTurn):
            return
        if self._running is None:
            self._cancelled.add(message.turn_id)
        elif self._running.turn_id == message.turn_id:
            self._running.cancel()

    async def receive(self, message: Message, ctx: Context) -> object:
        try:
            standing = self._standing or await self._take_over(ctx)
            match message:
                case TakeTurns():
                    await self._next_turn(ctx, standing)
                case SettleAction(action_id=action_id):
                    await settle_action(self._parts, self._user_id, standing.fence, ctx, action_id)
                case SegmentDue():
                    if await self._silences.due(ctx, standing.fence, message):
                        await self._segment_over(ctx, standing)
                case CollapseSegment():
                    ended = await self._silences.collapse(ctx, standing.fence)
                    await self._segment_over(ctx, standing)
                    return ended
                case SummaryMade():
                    await self._silences.summarised(ctx, standing.fence, message)
                    await self._look_back(standing)
                case BriefMade():
                    await self._look_back(standing)
                case MemoriesMade(segment_id=segment_id, count=count):
                    await ctx.publish(
                        MemoriesStored(
                            user_id=self._user_id, segment_id=segment_id, count=count,
                            at=self._parts.clock.now(),
                        )
                    )  # fmt: skip
                case PauseSegment():
                    return await self._silences.pause(standing.fence)
                case ResumeSegment():
                    return await self._silences.resume(standing.fence)
                case _:
                    raise NotImplementedError(type(message).__name__)
        except StaleEpoch:
            self._standing = None
            self._parts.stale()
            raise
        except DatabaseUnavailable:
            # What this instance knows may be out of date: it is read again before the next message.
            self._standing = None
            raise
        return None

    async def _take_over(self, ctx: Context) -> Standing:
        standing = await take_over(self._parts, self._user_id)
        for turn in standing.unsettled:
            await self._endings.settle_earlier(ctx, turn)
        self._standing = standing
        return standing

    async def _next_turn(self, ctx: Context, standing: Standing) -> None:
        parts = self._parts
        begun_at = parts.clock.monotonic()
        # Of those that wait, the database knows.
        self._cancelled.clear()
        taken = await turns.take(
            parts.database.step, self._user_id, standing.fence, parts.ids.new(), parts.clock.now(),
            parts.segment_idle,
        )  # fmt: skip
        match taken:
            case TakenTurn():
                with bound(turn_id=str(taken.turn_id), request_id=taken.request_id):
                    await self._turn(ctx, standing, taken, begun_at)
            case SkippedTurn():
                await self._skip(ctx, taken)

    async def _skip(self, ctx: Context, skipped: SkippedTurn) -> None:
        say = partial(self._parts.feeds.append, self._user_id)
        Voice(skipped.turn_id, skipped.attempt + 1, say).cancelled("")
        event = closing_event(
            self._user_id, skipped.turn_id, skipped.seq, TurnState.CANCELLED,
            self._parts.clock.now(),
        )  # fmt: skip
        await self._endings.settle(ctx, skipped.turn_id, event)

    async def _turn(
        self, ctx: Context, standing: Standing, taken: TakenTurn, begun_at: float
    ) -> None:
        parts = self._parts
        prompting = TurnPrompt(parts, self._user_id, ctx, standing, taken)
        run = TurnRun(
            parts, self._user_id, standing.fence, taken, begun_at, self._told, prompting,
            ctx.publish,
        )  # fmt: skip
        self._running = run
        if taken.turn_id in self._cancelled:
            run.cancel()
        run.mark("started_ms")
        if notice := parts.notice():
            run.notice("model", notice)
        parts.reached(Stage.RUNNING, taken.turn_id)
        try:
            await self._announce(ctx, standing, taken)
            ending = await run.run()
            closing = ending.closing
            event = closing_event(
                self._user_id, taken.turn_id, taken.seq, closing.state, parts.clock.now(),
                segment_id=taken.segment_id, usage=ending.usage, code=closing.error_code,
            )  # fmt: skip
            state = await self._endings.commit(ctx, standing.fence, ending, event)
        except Exception:
            # The turn still stands as running: only taking over again can tell what is to be done.
            self._standing = None
            raise
        finally:
            self._running = None
        if state is not closing.state:
            raise StaleEpoch("The turn was ended by another activation.")
        self._endings.tell(run, ending)
        standing.live.add(
            taken.seq, taken.message_id, taken.blocks, closing.messages, parts.clock.now()
        )
        before = standing.working
        if closing.working is not None:
            standing.working = prompting.working
        if ending.bug is not None:
            # The turn is closed and the user told. What is held here may be wrong: read it again.
            self._standing = None
            log.error("turn_failed_by_bug", exc_info=ending.bug)
        log.info(
            "turn_ended", state=state, attempt=closing.attempt, error=closing.error_code,
            provider=closing.provider, model=closing.model,
        )  # fmt: skip
        await self._rendered(ctx, taken, prompting)
        if closing.working is not None and prompting.working != before:
            await self._working_changed(ctx, standing, taken.turn_id)
        await self._endings.settle(ctx, taken.turn_id, event)
        await self._compress(ctx, standing, taken.segment_id)

    async def _announce(self, ctx: Context, standing: Standing, taken: TakenTurn) -> None:
        user_id, turn_id, now = self._user_id, taken.turn_id, self._parts.clock.now()
        standing.live.run_again(taken.seq)
        if taken.segment_opened:
            standing.live.clear()
            await self._look_back(standing)
            await ctx.publish(SegmentOpened(user_id=user_id, segment_id=taken.segment_id, at=now))
        if taken.use_day is not None:
            await ctx.publish(
                UseDayAdvanced(user_id=user_id, turn_id=turn_id, ordinal=taken.use_day)
            )
        await ctx.publish(
            TurnStarted(
                user_id=user_id, turn_id=turn_id, seq=taken.seq, attempt=taken.attempt, at=now
            )
        )

    async def _look_back(self, standing: Standing) -> None:
        """Read anew what the prompt holds of what was before."""
        async with self._parts.database.user(self._user_id) as tx:
            standing.earlier = await read_earlier(tx, self._user_id)
        if (brief := standing.earlier.brief) is not None:
            standing.live.forget(brief.through_seq)
            standing.compressing = None

    async def _segment_over(self, ctx: Context, standing: Standing) -> None:
        standing.live.clear()
        before, standing.working = standing.working, WorkingState()
        await self._look_back(standing)
        if before != standing.working:
            await self._working_changed(ctx, standing, None)

    async def _working_changed(
        self, ctx: Context, standing: Standing, turn_id: UUID | None
    ) -> None:
        await ctx.publish(
            WorkingStateChanged(
                user_id=self._user_id, turn_id=turn_id, surfaced=len(standing.working.surfaced)
            )
        )

    async def _rendered(self, ctx: Context, taken: TakenTurn, prompting: TurnPrompt) -> None:
        """Say which sections of the prompt are others than in the last; keep them to look at."""
        prompt = prompting.composed
        if prompt is None:
            return
        now = {one.name: one for one in prompt.rendered}
        changed = [name for name, one in now.items() if self._shown.get(name) != one.text]
        gone = [name for name in self._shown if name not in now]
        self._shown = {name: one.text for name, one in now.items()}
        for name in (*changed, *gone):
            one = now.get(name)
            await ctx.publish(
                TrinketRendered(
                    user_id=self._user_id,
                    turn_id=taken.turn_id,
                    name=name,
                    placement=one.placement if one else "",
                    tokens=one.tokens if one else 0,
                )
            )
        await self._parts.renders.keep(
            self._user_id, taken.turn_id, prompt, self._parts.clock.now()
        )

    async def _compress(self, ctx: Context, standing: Standing, segment_id: UUID) -> None:
        """Have the older part of a segment that has outgrown the prompt compressed. If this is
        lost, the next turn finds the same."""
        through = standing.live.to_compress
        before = standing.compressing
        if through is None or (before is not None and through < before + VERBATIM):
            return
        standing.compressing = through
        async with self._parts.database.user(self._user_id) as tx:
            await ctx.tell_durable(
                tx, keeper_of(self._user_id),
                CompressSegment(segment_id=segment_id, through_seq=through),
                lane=BRIEFS, key=str(segment_id),
            )  # fmt: skip
