"""A conversation is taken over by a new activation: fenced, recovered, read back."""

from __future__ import annotations

from functools import partial
from uuid import UUID

import msgspec

from mira.actors.live_turns import LiveTurns
from mira.actors.parts import Parts
from mira.actors.recovery import recover
from mira.actors.voice import Voice
from mira.messages.content import plain_text
from mira.messages.turn import TurnState
from mira.store import history, turns
from mira.store.turns import Closing, Fence, TurnRecord
from mira.telemetry import logger

log = logger("door")

#: Turns read back at most.
MAX_TURNS = 400


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What the door knows when it has taken over."""

    fence: Fence
    name: str
    timezone: str
    live: LiveTurns
    #: Turns that have ended and whose closing event must still be announced, oldest first.
    unsettled: tuple[TurnRecord, ...]


async def take_over(parts: Parts, user_id: UUID) -> Standing:
    """From here on older activations can write no more.

    Turns that one of them left in the middle are ended as interrupted or cancelled with what is
    known of them, or put back in line. Raises StaleEpoch if another server has taken over.
    """
    now = parts.clock.now()
    ended: list[tuple[TurnRecord, Closing]] = []
    async with parts.database.user(user_id) as tx:
        fence = await turns.activate(tx, user_id, parts.generation)
        for turn in await turns.left_running(tx, user_id):
            closing = await recover(tx, user_id, turn, parts.ids)
            if closing is None:
                log.info("turn_runs_again", turn_id=str(turn.id))
                continue
            await turns.close(tx, user_id, fence, closing, now)
            ended.append((turn, closing))
        unsettled = await turns.unsettled(tx, user_id)
        recent = await history.recent(
            tx, user_id, before_seq=2**62, characters=parts.history_tokens * 4, turns=MAX_TURNS
        )
        who = await tx.row("select name, timezone from users where id = $1", user_id)
    assert who is not None
    for turn, closing in ended:
        _tell(parts, user_id, turn, closing)
    live = LiveTurns(parts.history_tokens)
    live.load(recent)
    return Standing(
        fence=fence,
        name=who["name"],
        timezone=who["timezone"],
        live=live,
        unsettled=tuple(unsettled),
    )


def _tell(parts: Parts, user_id: UUID, turn: TurnRecord, closing: Closing) -> None:
    text = "".join(plain_text(m.blocks) for m in closing.messages)
    voice = Voice(turn.id, turn.attempt, partial(parts.feeds.append, user_id))
    voice.speak_last()
    if closing.state is TurnState.CANCELLED:
        voice.cancelled(text)
    else:
        voice.interrupted(text)
    log.info("turn_recovered", turn_id=str(turn.id), state=closing.state)
