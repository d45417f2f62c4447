"""A conversation is taken over by a new activation: fenced, recovered, read back."""

from __future__ import annotations

from functools import partial
from uuid import UUID

import msgspec

from mira.actors.earlier import Earlier, read_earlier
from mira.actors.live_turns import LiveTurns
from mira.actors.parts import Parts
from mira.actors.recovery import recover
from mira.actors.voice import Voice
from mira.actors.working import WorkingState, decode_working
from mira.messages.content import plain_text
from mira.messages.turn import TurnState
from mira.prompt.layout import Prompt
from mira.store import history, segments, turns
from mira.store.database import Tx
from mira.store.turns import Closing, Fence, TurnRecord
from mira.telemetry import logger

log = logger("door")

#: Turns read back at most.
MAX_TURNS = 400
#: The share of a model's window that live turns may take.
OF_WINDOW = 0.6


class Standing(msgspec.Struct, kw_only=True):
    """What the door knows when it has taken over, and keeps up to date from then on."""

    fence: Fence
    name: str
    timezone: str
    live: LiveTurns
    earlier: Earlier
    working: WorkingState
    #: Turns that have ended and whose closing event must still be announced, oldest first.
    unsettled: tuple[TurnRecord, ...]
    #: The last prompt that this activation has sent.
    prompt: Prompt | None = None
    #: Up to which turn a brief has been asked for.
    compressing: int | None = None


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
        await segments.keep_watch(tx, user_id, now, parts.segment_idle)
        earlier = await read_earlier(tx, user_id)
        live = await read_live(parts, tx, user_id, earlier)
        who = await tx.row(
            "select u.name, u.timezone, c.working_state::text as working "
            "from users u join conversations c on c.user_id = u.id where u.id = $1",
            user_id,
        )
    assert who is not None
    for turn, closing in ended:
        _tell(parts, user_id, turn, closing)
    return Standing(
        fence=fence,
        name=who["name"],
        timezone=who["timezone"],
        live=live,
        earlier=earlier,
        working=decode_working(who["working"]),
        unsettled=tuple(unsettled),
    )


async def read_live(parts: Parts, tx: Tx, user_id: UUID, earlier: Earlier) -> LiveTurns:
    """The turns of the open segment that its brief does not stand for."""
    live = LiveTurns(lambda: trigger(parts))
    if earlier.open_id is not None:
        live.load(
            await history.of_segment(
                tx, user_id, earlier.open_id, characters=trigger(parts) * 6, turns=MAX_TURNS,
                after_seq=earlier.brief.through_seq if earlier.brief else 0,
            )
        )  # fmt: skip
    if live.last_message_at is None:
        live.last_message_at = earlier.ended_at
    return live


def trigger(parts: Parts) -> int:
    """How many tokens of live turns call for a brief: a setting, or what the model can read."""
    return min(parts.history_tokens, int(parts.model.window * OF_WINDOW))


def _tell(parts: Parts, user_id: UUID, turn: TurnRecord, closing: Closing) -> None:
    text = "".join(plain_text(m.blocks) for m in closing.messages)
    voice = Voice(turn.id, turn.attempt, partial(parts.feeds.append, user_id))
    voice.speak_last()
    if closing.state is TurnState.CANCELLED:
        voice.cancelled(text)
    else:
        voice.interrupted(text)
    log.info("turn_recovered", turn_id=str(turn.id), state=closing.state)
