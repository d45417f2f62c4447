"""The tasks that handlers run in, kept for reuse.

A cell with mail is given to a worker, which drains it and parks. Workers stand in a cancel scope
of their own, so a deadline can cancel the handler that runs in it and clean-up can be shielded
from that, without the cost of entering a scope for every message.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVarTuple

from anyio import CancelScope
from anyio.lowlevel import cancel_shielded_checkpoint

from .backend import Backend, Bell, Waiter

if TYPE_CHECKING:
    from .cell import Cell

Ts = TypeVarTuple("Ts")

#: Workers that stay parked; further ones end when they have nothing to do.
SPARE = 64


class Workers:
    """Runs cells, one worker each, and background tasks, and knows when all is quiet.

    `crashed` is called with an exception that escapes: a bug of the engine itself.
    """

    def __init__(self, backend: Backend, crashed: Callable[[Exception], None]) -> None:
        self._backend = backend
        self._crashed = crashed
        self._parked: list[Waiter[Cell | None]] = []
        self._alive = 0
        self._background = 0
        self._settled = Bell(backend)
        self._watched = False
        self._closed = False

    @property
    def busy(self) -> int:
        """How many cells and background tasks are running."""
        return self._alive - len(self._parked) + self._background

    def dispatch(self, cell: Cell) -> None:
        """Have a cell drained. The caller sees to it that it is given to one worker only."""
        while self._parked:
            waiter = self._parked.pop()
            if not waiter.done():
                waiter.set_result(cell)
                return
        self._alive += 1
        self._backend.spawn(self._worker, cell)

    def spawn(self, work: Callable[[*Ts], Coroutine[Any, Any, None]], *args: *Ts) -> None:
        """Run a background task, which `quiet` waits for."""
        self._background += 1
        self._backend.spawn(self._supervised, work, args)

    async def quiet(self) -> None:
        """Wait until nothing is running. For one caller at a time."""
        self._watched = True
        try:
            while self.busy:
                await self._settled.wait()
        finally:
            self._watched = False

    async def close(self) -> None:
        """End the parked workers. Nothing may be running."""
        self._closed = True
        for parked in self._parked:
            parked.set_result(None)
        self._parked.clear()
        while self._alive:
            await self._settled.wait()

    async def _worker(self, cell: Cell | None) -> None:
        try:
            while True:
                # A scope that was cancelled is used up; the next message gets a fresh one.
                with CancelScope() as scope:
                    while not scope.cancel_called:
                        if cell is None:
                            cell = await self._next()
                            if cell is None:
                                return
                        if not await cell.drain(scope):
                            cell = None
                        elif not scope.cancel_called:
                            await cancel_shielded_checkpoint()
        except Exception as error:
            self._crashed(error)
        finally:
            self._alive -= 1
            self._settled.ring()
            if cell is not None and not cell.resting and not self._closed:
                # A cancellation from outside ended this task, not the cell.
                self.dispatch(cell)

    async def _next(self) -> Cell | None:
        if self._closed or len(self._parked) >= SPARE:
            return None
        waiter: Waiter[Cell | None] = self._backend.waiter()
        self._parked.append(waiter)
        if self._watched:
            self._settled.ring()
        return await waiter

    async def _supervised(
        self, work: Callable[..., Coroutine[Any, Any, None]], args: tuple[Any, ...]
    ) -> None:
        try:
            await work(*args)
        except Exception as error:
            self._crashed(error)
        finally:
            self._background -= 1
            self._settled.ring()
