"""The door of a conversation: its one ordered mailbox.

What belongs to the conversation changes only here, one message at a time: turns are taken in
order, run, committed with everything that belongs to them, announced, and settled before the next
is taken. What must be remembered is in Postgres; an instance can be dropped at any time.
"""

from __future__ import annotations

from functools import partial
from uuid import UUID

from mira.actors.actions import settle_action
from mira.actors.endings import Endings, closing_event
from mira.actors.parts import Parts, Stage
from mira.actors.runtime.actor import Actor, Context
from mira.actors.taking_over import Standing, take_over
from mira.actors.turn_run import Ending, TurnRun
from mira.actors.voice import Voice
from mira.errors import DatabaseUnavailable, StaleEpoch
from mira.messages.base import Address, Message
from mira.messages.segment import SegmentOpened
from mira.messages.turn import (
    CancelTurn,
    PromptComposed,
    SettleAction,
    TakeTurns,
    TurnStarted,
    TurnState,
    UseDayAdvanced,
)
from mira.prompt.composer import Inputs, Prompt
from mira.store import effects, turns
from mira.store.turns import SkippedTurn, TakenTurn
from mira.telemetry import bound, logger

log = logger("door")

KIND = "continuum"


def door_of(user_id: UUID) -> Address:
    """The address of a user's conversation."""
    return Address(KIND, str(user_id))


class Continuum(Actor):
    """One user's conversation, while somebody speaks."""

    __slots__ = ("_cancelled", "_endings", "_parts", "_running", "_standing", "_told", "_user_id")

    def __init__(self, parts: Parts, user_id: UUID) -> None:
        self._parts = parts
        self._user_id = user_id
        self._endings = Endings(parts, user_id)
        self._standing: Standing | None = None
        self._running: TurnRun | None = None
        #: Turns to be stopped of which it was not known yet that they run.
        self._cancelled: set[UUID] = set()
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
            parts.database.step, self._user_id, standing.fence, parts.ids.new(), parts.clock.now()
        )
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
        run = TurnRun(parts, self._user_id, standing.fence, taken, begun_at, self._told)
        self._running = run
        if taken.turn_id in self._cancelled:
            run.cancel()
        run.mark("started_ms")
        if notice := parts.notice():
            run.notice("model", notice)
        parts.reached(Stage.RUNNING, taken.turn_id)
        try:
            await self._announce(ctx, taken)
            ending = await self._attempt(ctx, standing, taken, run)
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
        standing.live.add(taken.seq, taken.blocks, closing.messages, parts.clock.now())
        if ending.bug is not None:
            # The turn is closed and the user told. What is held here may be wrong: read it again.
            self._standing = None
            log.error("turn_failed_by_bug", exc_info=ending.bug)
        log.info(
            "turn_ended", state=state, attempt=closing.attempt, error=closing.error_code,
            provider=closing.provider, model=closing.model,
        )  # fmt: skip
        await self._endings.settle(ctx, taken.turn_id, event)

    async def _attempt(
        self, ctx: Context, standing: Standing, taken: TakenTurn, run: TurnRun
    ) -> Ending:
        """A turn that cannot even be composed has an ending, too: else it would stop the thread."""
        try:
            prompt = await self._compose(ctx, standing, taken)
        except (StaleEpoch, DatabaseUnavailable):
            raise
        except Exception as error:
            return run.failed(error)
        return await run.run(prompt)

    async def _announce(self, ctx: Context, taken: TakenTurn) -> None:
        user_id, turn_id, now = self._user_id, taken.turn_id, self._parts.clock.now()
        if taken.segment_opened:
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

    async def _compose(self, ctx: Context, standing: Standing, taken: TakenTurn) -> Prompt:
        standing.live.run_again(taken.seq)
        prompt = self._parts.composer.compose(
            Inputs(
                user=standing.name,
                timezone=standing.timezone,
                now=self._parts.clock.now(),
                last_message_at=standing.live.last_message_at,
                turns=standing.live.all(),
                words=taken.blocks,
                outcome=await self._outcome(taken),
            )
        )
        await ctx.publish(
            PromptComposed(
                user_id=self._user_id,
                turn_id=taken.turn_id,
                tokens_estimated=prompt.tokens_estimated,
                messages=len(prompt.messages),
            )
        )
        return prompt

    async def _outcome(self, taken: TakenTurn) -> str | None:
        """What a turn that the server began itself is about: an action that the user decided on."""
        if taken.origin != "action":
            return None
        async with self._parts.database.user(self._user_id) as tx:
            action = await effects.behind(tx, self._user_id, taken.turn_id)
        word = "allowed" if action.state == "executed" else "refused"
        return (
            f"The user was asked about your call of {action.tool} with {action.arguments} and "
            f"{word} it. What came of it: {action.result}"
        )
