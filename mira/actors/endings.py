"""How turns end: written with all that belongs to them, told to clients, announced, settled."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import anyio

from mira.actors.indexer import INDEX_LANE, indexer_of
from mira.actors.parts import Parts, Stage
from mira.actors.runtime.actor import Context
from mira.actors.runtime.routes import Contribution
from mira.actors.turn_run import Ending, TurnRun
from mira.actors.voice import Voice
from mira.errors import DatabaseUnavailable
from mira.messages.base import DurableRow, Event, Written
from mira.messages.content import Role, ToolUse, plain_text
from mira.messages.indexing import IndexHistory
from mira.messages.stream import AnyTurnEvent
from mira.messages.turn import (
    Timings,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnInterrupted,
    TurnState,
    Usage,
)
from mira.store import history, turns
from mira.store.database import Caller, Statement, Tx
from mira.store.history import HistoryMessage
from mira.store.turns import Fence, TurnRecord
from mira.telemetry import logger

log = logger("turn")

#: Seconds that a commit may take once the turn is over, however it was ended.
COMMIT_TIMEOUT = 5.0
#: Waits between attempts of a commit while the database is away: about half a minute in all.
COMMIT_RETRIES = (0.1, 0.3, 1.0, 2.0, 4.0, 8.0, 15.0)


class Endings:
    """Ends the turns of one conversation."""

    def __init__(self, parts: Parts, user_id: UUID) -> None:
        self._parts = parts
        self._user_id = user_id

    async def commit(self, ctx: Context, fence: Fence, ending: Ending, event: Event) -> TurnState:
        """Write an ending with what contributors add to it, or nothing of it.

        Returns the state in which the turn now stands: the first writer wins. While the database
        is away it is tried again for about half a minute; then DatabaseUnavailable is raised.
        Raises StaleEpoch if this activation was replaced.
        """
        contributions = ctx.contribute(event)
        again = False
        for delay in (*COMMIT_RETRIES, None):
            try:
                # Shielded: an answer that is there is not lost because somebody cancels now.
                with anyio.CancelScope(shield=True), anyio.fail_after(COMMIT_TIMEOUT):
                    if not contributions:
                        return await self._close(self._parts.database.step, fence, ending)
                    async with self._parts.database.user(self._user_id) as tx:
                        if again and await self._stands(tx, ending):
                            return ending.closing.state
                        return await self._write(tx, ctx, fence, ending, contributions)
            except (DatabaseUnavailable, TimeoutError) as error:
                if delay is None:
                    raise DatabaseUnavailable("The answer could not be stored.") from error
                log.warning("commit_retried", error=type(error).__name__)
                again = True
                await self._parts.clock.sleep(delay)
        raise AssertionError("unreachable")

    async def _stands(self, tx: Tx, ending: Ending) -> bool:
        """Whether a commit of this very ending was done although nobody could say so."""
        turn = await turns.get(tx, self._user_id, ending.closing.turn_id)
        return (turn.state, turn.attempt) == (ending.closing.state, ending.closing.attempt)

    async def _write(
        self,
        tx: Tx,
        ctx: Context,
        fence: Fence,
        ending: Ending,
        contributions: Sequence[Contribution],
    ) -> TurnState:
        state = await self._close(tx, fence, ending)
        if state is not ending.closing.state:
            return state
        for contribution in contributions:
            for row in contribution.rows:
                assert isinstance(row, Statement)
                await tx.execute(row.sql, *row.values)
            for message in contribution.durable:
                await ctx.tell_durable(
                    tx, message.to, message.message,
                    at=message.at, lane=message.lane, key=message.key,
                )  # fmt: skip
        return state

    async def _close(self, caller: Caller, fence: Fence, ending: Ending) -> TurnState:
        return await turns.close(
            caller, self._user_id, fence, ending.closing, self._parts.clock.now()
        )

    def tell(self, run: TurnRun, ending: Ending) -> None:
        """Tell whoever follows the turn how it has ended. After the commit only."""
        self._parts.reached(Stage.COMMITTED, run.turn_id)
        run.mark("committed_ms")
        match ending.closing.state:
            case TurnState.COMPLETE:
                run.voice.completed(
                    ending.reply,
                    ending.usage,
                    ending.tools_used,
                    run.timings(),
                    self._parts.clock.now(),
                    ending.memories,
                )
            case TurnState.CANCELLED:
                run.voice.cancelled(ending.reply)
            case _:
                assert ending.error is not None
                run.voice.failed(ending.error.code, ending.error.detail, retry=ending.may_retry)

    async def settle_earlier(self, ctx: Context, turn: TurnRecord) -> None:
        """Settle a turn that an earlier activation ended. What brought the door here is not done
        by that."""
        event = closing_event(
            self._user_id, turn.id, turn.seq, turn.state, self._parts.clock.now(),
            segment_id=turn.segment_id, usage=turn.usage, code=turn.error_code,
        )  # fmt: skip
        await self._tell_late(turn)
        await ctx.publish(event)
        await self._settle(ctx, turn.id, wake=0)

    async def _tell_late(self, turn: TurnRecord) -> None:
        """Whoever still follows a turn hears of its end now, if nobody could tell it then."""
        feed = self._parts.feeds.find(self._user_id)
        if feed is None or feed.running != turn.id:
            return
        async with self._parts.database.user(self._user_id) as tx:
            said = await history.of_turn(tx, self._user_id, turn.id)
        for late in last_events(turn, said):
            feed.append(late)

    async def settle(self, ctx: Context, turn_id: UUID, event: Event) -> None:
        """Announce the closing event, wait for its handlers, and let the next turn come.

        A turn whose closing event was announced but not settled is announced again by the next
        activation: handlers are idempotent.
        """
        await ctx.publish(event)
        wake = ctx.durable.id if ctx.durable else 0
        done = await self._settle(ctx, turn_id, wake)
        if not ctx.durable:
            return
        if done:
            ctx.mark_done()
        else:
            ctx.again()

    async def _settle(self, ctx: Context, turn_id: UUID, wake: int) -> bool:
        now = self._parts.clock.now()
        settled = await turns.settle(self._parts.database.step, self._user_id, turn_id, now, wake)
        if settled.index is not None:
            row_id, version = settled.index
            row = DurableRow(
                id=row_id, version=version, to=indexer_of(self._user_id), lane=INDEX_LANE,
                key=INDEX_LANE, message=IndexHistory(), attempts=0, due_at=now,
            )  # fmt: skip
            # The lane has this one row, so it is always the head.
            ctx.durable_written(Written(row=row, head=True))
        self._parts.reached(Stage.SETTLED, turn_id)
        return settled.done


def closing_event(
    user_id: UUID,
    turn_id: UUID,
    seq: int,
    state: TurnState,
    at: datetime,
    *,
    segment_id: UUID | None = None,
    usage: Usage | None = None,
    code: str | None = None,
) -> Event:
    """The event that says how a turn has ended."""
    match state:
        case TurnState.COMPLETE:
            return TurnCompleted(
                user_id=user_id, turn_id=turn_id, seq=seq, segment_id=segment_id,
                usage=usage or Usage(), at=at,
            )  # fmt: skip
        case TurnState.CANCELLED:
            return TurnCancelled(user_id=user_id, turn_id=turn_id, seq=seq, at=at)
        case TurnState.INTERRUPTED:
            return TurnInterrupted(user_id=user_id, turn_id=turn_id, seq=seq, at=at)
        case _:
            return TurnFailed(
                user_id=user_id, turn_id=turn_id, seq=seq, at=at, code=code or "internal"
            )


def last_events(record: TurnRecord, said: Sequence[HistoryMessage]) -> list[AnyTurnEvent]:
    """What can still be told of a turn that is over: its text at once, and how it ended."""
    told: list[AnyTurnEvent] = []
    text = "".join(plain_text(m.blocks) for m in said if m.role is Role.ASSISTANT)
    voice = Voice(record.id, max(1, record.attempt), told.append)
    voice.speak_last()
    if text:
        voice.snapshot(text)
    match record.state:
        case TurnState.COMPLETE:
            voice.completed(
                text,
                record.usage or Usage(),
                tuple(
                    dict.fromkeys(b.name for m in said for b in m.blocks if isinstance(b, ToolUse))
                ),
                record.timings or Timings(),
                record.finished_at or record.accepted_at,
            )
        case TurnState.CANCELLED:
            voice.cancelled(text)
        case TurnState.INTERRUPTED:
            voice.interrupted(text)
        case _:
            voice.failed(record.error_code or "internal", record.error_detail or "", retry=True)
    return told
