"""The turns of the open segment that the next prompt contains, held by the door."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from uuid import UUID

from mira.messages.content import Block, Role, Said, Text, plain_text
from mira.messages.subcortex import Exchange
from mira.prompt.budget import first_kept
from mira.prompt.layout import STOPPED
from mira.prompt.turn import Turn
from mira.store.history import HistoryMessage
from mira.store.turns import NewMessage

#: Turns of the user that stay word for word when a segment is compressed.
VERBATIM = 10
#: So much longer than the trigger of compression the live turns may get until that is done;
#: beyond, the oldest are left out.
PATIENCE = 4 / 3


@dataclass(frozen=True, slots=True)
class LiveTurn:
    """A turn in the prompt: `message_ids` of all that is said in it, `reply` the last answer's."""

    seq: int
    turn: Turn
    message_ids: tuple[UUID, ...]
    reply: UUID | None


class LiveTurns:
    """Whole turns, oldest first, as many as fit. Bounded by `trigger` (tokens, which may change),
    however long the segment is."""

    def __init__(self, trigger: Callable[[], int]) -> None:
        self._trigger = trigger
        self._turns: list[LiveTurn] = []
        self.last_message_at: datetime | None = None

    def load(self, messages: Sequence[HistoryMessage]) -> None:
        """Start from stored messages, in order."""
        self._turns = read(messages)
        self._fit()
        if messages:
            self.last_message_at = messages[-1].created_at

    def add(
        self,
        seq: int,
        message_id: UUID | None,
        words: tuple[Block, ...],
        messages: Iterable[NewMessage],
        at: datetime,
    ) -> None:
        """A turn has ended: what the user said, if anything, and what was stored for it."""
        said = [(message_id, Role.USER, words, "complete")] if words else []
        stored = [(m.id, m.role, m.blocks, m.state) for m in messages]
        self._turns += _turn(seq, [*said, *stored])
        self._fit()
        self.last_message_at = at

    def run_again(self, seq: int) -> None:
        """A turn is tried again: an earlier attempt of it, the newest turn here, is void."""
        if self._turns and self._turns[-1].seq == seq:
            del self._turns[-1]

    def clear(self) -> None:
        """The segment has ended."""
        self._turns.clear()

    def forget(self, through_seq: int) -> None:
        """Turns up to and with this one stand in the brief."""
        self._turns = [one for one in self._turns if one.seq > through_seq]

    def all(self) -> tuple[Turn, ...]:
        return tuple(one.turn for one in self._turns)

    def newest(self, tokens: int) -> tuple[Turn, ...]:
        """As many of the newest as fit `tokens`; none if not even the last does."""
        turns = self.all()
        while turns and sum(turn.tokens for turn in turns) > tokens:
            turns = turns[1:]
        return turns

    @property
    def tokens(self) -> int:
        """About what they cost."""
        return sum(one.turn.tokens for one in self._turns)

    @property
    def message_ids(self) -> frozenset[UUID]:
        """Every message that stands in the prompt anyway."""
        return frozenset(i for one in self._turns for i in one.message_ids)

    @property
    def replies(self) -> tuple[UUID, ...]:
        """The last two answers, the older one first."""
        return tuple(one.reply for one in self._turns if one.reply is not None)[-2:]

    @property
    def to_compress(self) -> int | None:
        """The last turn of what is to be compressed, once the live turns outgrow the trigger.

        The newest VERBATIM turns stay; fewer, if those alone would fill more than half of it.
        """
        trigger = self._trigger()
        if self.tokens <= trigger:
            return None
        kept = self._turns[-VERBATIM:]
        first = first_kept([one.turn.tokens for one in kept], trigger // 2, keep=1.0)
        staying = len(kept) - first
        return self._turns[-staying - 1].seq if staying < len(self._turns) else None

    def _fit(self) -> None:
        sizes = [one.turn.tokens for one in self._turns]
        del self._turns[: first_kept(sizes, int(self._trigger() * PATIENCE))]


def read(messages: Iterable[HistoryMessage]) -> list[LiveTurn]:
    """Stored messages, in order, as turns."""
    return [
        turn
        for seq, group in groupby(messages, key=lambda m: m.turn_seq)
        for turn in _turn(seq, [(m.id, m.role, m.blocks, m.state) for m in group])
    ]


def _turn(
    seq: int, messages: Sequence[tuple[UUID | None, Role, tuple[Block, ...], str]]
) -> list[LiveTurn]:
    """One turn, or none if nothing was said in it."""
    if not messages:
        return []
    replies = [
        i for i, role, blocks, _ in messages if role is Role.ASSISTANT and plain_text(blocks)
    ]
    return [
        LiveTurn(
            seq=seq,
            turn=Turn.of(_as_said(role, blocks, state) for _, role, blocks, state in messages),
            message_ids=tuple(i for i, _, _, _ in messages if i is not None),
            reply=replies[-1] if replies else None,
        )
    ]


def _as_said(role: Role, blocks: tuple[Block, ...], state: str) -> Said:
    stopped = role is Role.ASSISTANT and state != "complete"
    return Said(role=role, blocks=(*blocks, Text(text=STOPPED)) if stopped else blocks)


def exchanges(turns: Sequence[Turn], most: int = 3) -> tuple[Exchange, ...]:
    """The last turns as what was said and what was answered, oldest first."""
    return tuple(
        Exchange(user=_words(turn, Role.USER), assistant=_words(turn, Role.ASSISTANT))
        for turn in turns[-most:]
    )


def _words(turn: Turn, role: Role) -> str:
    return "".join(plain_text(said.blocks) for said in turn.said if said.role is role)
