"""Which turns show their thinking: those whose message asked for it."""

from __future__ import annotations

from collections import OrderedDict
from uuid import UUID

#: Turns remembered; who comes back later than that asks anew.
_MOST = 4096


class Wanted:
    """The turns whose message asked for thinking, so that every client of theirs, also one that
    comes back, gets it. Held in memory: after a restart nobody does."""

    def __init__(self) -> None:
        self._turns: OrderedDict[UUID, None] = OrderedDict()

    def add(self, turn_id: UUID) -> None:
        self._turns[turn_id] = None
        if len(self._turns) > _MOST:
            self._turns.popitem(last=False)

    def __contains__(self, turn_id: object) -> bool:
        return turn_id in self._turns
