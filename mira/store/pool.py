"""A pool of database connections that costs a turn next to nothing.

asyncpg's own pool makes two tasks for every loan. Here a free connection is taken from a list and
put back on it, and only who finds none has to wait.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import anyio
import asyncpg

if TYPE_CHECKING:
    Connection = asyncpg.Connection[asyncpg.Record]
else:
    Connection = asyncpg.Connection


class Pool:
    """At most `size` connections, made when they are needed, lent to one borrower at a time.

    Who waits is served in the order of asking. The connection that came back last is lent first,
    so that what it has prepared is of use.
    """

    def __init__(
        self, connect: Callable[[], Awaitable[Connection]], size: int, *, patience: float
    ) -> None:
        """Nothing is connected yet. `patience`: seconds that a borrower waits for another's."""
        self._connect = connect
        self._size = size
        self._patience = patience
        self._free: list[Connection] = []
        self._lent: set[Connection] = set()
        #: Places taken by connections that are being made.
        self._coming = 0
        #: Each gets a connection, or None: a place in which to make one.
        self._waiting: deque[asyncio.Future[Connection | None]] = deque()
        self._closed = False
        self._all_back = asyncio.Event()

    @property
    def idle(self) -> int:
        """Connections that are open and free."""
        return len(self._free)

    @property
    def open(self) -> int:
        """Connections that are open."""
        return len(self._free) + len(self._lent)

    async def borrow(self) -> Connection:
        """Borrow a connection; give it back with `give_back` or `drop`.

        Raises TimeoutError when none became free in time, asyncpg.InterfaceError when the pool is
        closed, and whatever connecting raises.
        """
        if self._closed:
            raise asyncpg.InterfaceError("the pool is closed")
        while self._free:
            connection = self._free.pop()
            if not connection.is_closed():
                self._lent.add(connection)
                return connection
        if self.open + self._coming >= self._size:
            given = await self._wait()
            if given is not None:
                return given
        else:
            self._coming += 1
        return await self._make()

    def give_back(self, connection: Connection) -> None:
        """Give back a connection that is clean: in no transaction, nothing under way on it."""
        if self._closed or connection.is_closed():
            self.drop(connection)
            return
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return
        self._lent.discard(connection)
        self._free.append(connection)

    def drop(self, connection: Connection) -> None:
        """Give back a connection that must not be used again."""
        if not connection.is_closed():
            connection.terminate()
        self._lent.discard(connection)
        self._pass_place_on()
        if self._closed and not self._lent:
            self._all_back.set()

    async def aclose(self, within: float) -> None:
        """Close; wait at most `within` seconds for what is lent, then drop it. Idempotent."""
        self._closed = True
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_exception(asyncpg.InterfaceError("the pool is closed"))
        with anyio.move_on_after(within, shield=True):
            free, self._free = self._free, []
            for connection in free:
                await connection.close(timeout=within)
            if self._lent:
                await self._all_back.wait()
        self.terminate()

    def terminate(self) -> None:
        """Drop every connection at once."""
        self._closed = True
        for connection in (*self._free, *self._lent):
            if not connection.is_closed():
                connection.terminate()
        self._free.clear()
        self._lent.clear()

    async def _wait(self) -> Connection | None:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Connection | None] = loop.create_future()
        self._waiting.append(waiter)
        timer = loop.call_later(self._patience, _give_up, waiter)
        try:
            return await waiter
        except asyncio.CancelledError:
            # It may have been served in the same moment.
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                given = waiter.result()
                if given is not None:
                    self.give_back(given)
                else:
                    self._coming -= 1
                    self._pass_place_on()
            raise
        finally:
            timer.cancel()

    async def _make(self) -> Connection:
        """Connect, in a place that is counted already."""
        try:
            connection = await self._connect()
        except BaseException:
            self._coming -= 1
            self._pass_place_on()
            raise
        self._coming -= 1
        if self._closed:
            connection.terminate()
            raise asyncpg.InterfaceError("the pool is closed")
        self._lent.add(connection)
        return connection

    def _pass_place_on(self) -> None:
        while self._waiting and self.open + self._coming < self._size:
            waiter = self._waiting.popleft()
            if not waiter.done():
                self._coming += 1
                waiter.set_result(None)


def _give_up(waiter: asyncio.Future[Connection | None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError("no connection became free in time"))
