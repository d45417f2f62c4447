"""Putting idle actors to rest, a few at a time however many fall idle at once."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from .actor import Actor
from .observer import report

if TYPE_CHECKING:
    from .cell import Cell
    from .system import ActorSystem

#: How many may be releasing what they hold at the same time.
TOGETHER = 32


class Retirement:
    """Passivates cells that nobody has spoken to, and forgets them."""

    def __init__(self, system: ActorSystem) -> None:
        self._system = system
        self._waiting: deque[Cell] = deque()
        self._tasks = 0

    def add(self, cell: Cell) -> None:
        """Put a cell to rest that is idle now, unless it is spoken to before its turn comes."""
        if cell.actor is None or type(cell.actor).passivate is Actor.passivate:
            self._system.forget(cell)
            return
        self._waiting.append(cell)
        if self._tasks < TOGETHER:
            self._tasks += 1
            self._system.workers.spawn(self._run)

    async def passivate(self, cell: Cell) -> None:
        """Drop the instance, after it has released what it holds, within its time."""
        actor, cell.actor = cell.actor, None
        if actor is None:
            return
        try:
            with self._system.ticker.limit(self._system.settings.passivate_timeout):
                await actor.passivate()
        except Exception as error:
            report(self._system.observer.actor_failed, cell.address, None, error)

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self._retire(self._waiting.popleft())
        finally:
            self._tasks -= 1

    async def _retire(self, cell: Cell) -> None:
        if cell.idle_left() > 0:
            cell.check_later()
            return
        # Awake, so that a message that comes meanwhile waits for the next instance.
        cell.awake = True
        await self.passivate(cell)
        if len(cell):
            cell.check_later()
            cell.wake()
        else:
            self._system.forget(cell)
