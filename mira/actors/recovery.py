"""What a new activation does with turns that an earlier one left in the middle."""

from __future__ import annotations

from uuid import UUID

from mira.actors.transcript import Transcript
from mira.ids import Ids
from mira.messages.content import Block, Text, ToolResult, ToolUse
from mira.messages.turn import TurnState
from mira.store import effects, turns
from mira.store.database import Tx
from mira.store.turns import Closing, TurnRecord

#: A turn that was begun so often and never got anywhere may be what ends the process.
MOST_ATTEMPTS = 8


async def recover(tx: Tx, user_id: UUID, turn: TurnRecord, ids: Ids) -> Closing | None:
    """How a turn that was left in the middle ends; None: it left no trace and is back in line.

    A turn of which a client may have seen something, which has changed something outside or has
    asked whether it may, or which was begun too often, is never run again: what is known of it is
    kept, and every call has a result.
    """
    journal = await effects.of_turn(tx, user_id, turn.id)
    seen = await turns.has_checkpoint(tx, user_id, turn.id)
    asked = await effects.has_asked(tx, user_id, turn.id)
    cancelled = turn.cancel_requested_at is not None
    if not (journal or seen or asked or cancelled or turn.attempt >= MOST_ATTEMPTS):
        await turns.run_again(tx, user_id, turn.id)
        return None
    transcript = Transcript()
    words: tuple[Block, ...] = (Text(text=turn.checkpoint_text),) if turn.checkpoint_text else ()
    transcript.answered(
        words
        + tuple(ToolUse(call_id=e.call_id, name=e.tool, arguments=e.arguments) for e in journal)
    )
    for effect in journal:
        if effect.result is not None:
            transcript.result(
                ToolResult(
                    call_id=effect.call_id, text=effect.result, is_error=effect.state == "failed"
                )
            )
    transcript.stop(begun=[e.call_id for e in journal])
    state = TurnState.CANCELLED if cancelled else TurnState.INTERRUPTED
    return Closing(
        turn_id=turn.id,
        attempt=turn.attempt,
        state=state,
        messages=transcript.to_store(ids, state),
    )
