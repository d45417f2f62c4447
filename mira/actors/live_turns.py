"""The live turns that the next prompt contains, held by the door between its turns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby

from mira.messages.content import Block, Role, Said, Text
from mira.prompt.budget import estimate_said, first_kept
from mira.prompt.composer import STOPPED
from mira.store.history import HistoryMessage
from mira.store.turns import NewMessage


class LiveTurns:
    """Whole turns, oldest first, as many as fit the budget of tokens.

    What it holds is bounded by the budget, however long the history is.
    """

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens
        self._turns: list[tuple[Said, ...]] = []
        self._seqs: list[int] = []
        self._sizes: list[int] = []
        self.last_message_at: datetime | None = None

    def load(self, messages: Sequence[HistoryMessage]) -> None:
        """Start from stored messages, in order."""
        for seq, group in groupby(messages, key=lambda m: m.turn_seq):
            self._add(seq, (_as_said(m.role, m.blocks, m.state) for m in group))
        if messages:
            self.last_message_at = messages[-1].created_at

    def add(
        self, seq: int, words: tuple[Block, ...], messages: Iterable[NewMessage], at: datetime
    ) -> None:
        """A turn has ended: what the user said, if anything, and what was stored for it."""
        said = [Said(role=Role.USER, blocks=words)] if words else []
        self._add(seq, [*said, *(_as_said(m.role, m.blocks, m.state) for m in messages)])
        self.last_message_at = at

    def run_again(self, seq: int) -> None:
        """A turn is tried again: an earlier attempt of it, the newest turn here, is void."""
        if self._seqs and self._seqs[-1] == seq:
            del self._turns[-1], self._sizes[-1], self._seqs[-1]

    def _add(self, seq: int, said: Iterable[Said]) -> None:
        turn = tuple(said)
        if not turn:
            return
        self._turns.append(turn)
        self._seqs.append(seq)
        self._sizes.append(sum(map(estimate_said, turn)))
        first = first_kept(self._sizes, self._tokens)
        del self._turns[:first], self._sizes[:first], self._seqs[:first]

    def all(self) -> tuple[tuple[Said, ...], ...]:
        return tuple(self._turns)


def _as_said(role: Role, blocks: tuple[Block, ...], state: str) -> Said:
    stopped = role is Role.ASSISTANT and state != "complete"
    return Said(role=role, blocks=(*blocks, Text(text=STOPPED)) if stopped else blocks)
