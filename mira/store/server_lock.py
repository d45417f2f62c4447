"""One serving process per database: a session lock on a connection of its own.

Taking the lock also raises the house's generation: writes that carry an older one are refused, so
that a server that slept through its replacement cannot write when it wakes.
"""

from __future__ import annotations

from typing import Self

import anyio
import asyncpg

from mira.clock import Clock
from mira.errors import DatabaseUnavailable, StartupRefused
from mira.store.database import Connect, is_away
from mira.telemetry import logger

log = logger("server_lock")

#: The advisory lock that a serving process holds, and a schema being changed.
LOCK = 0x4D495241_02
#: Seconds between two looks at the lock's connection.
CHECK_EVERY = 5.0
#: Seconds between attempts to get the lock back while the database is away.
RETAKE_EVERY = 0.5
#: Seconds for which the lock may stay with a session that is nobody's any more. A server on the
#: other side of a network that broke notices after 25 (see the keep-alives below).
LINGER = 60.0

_ANOTHER = StartupRefused(
    "Another MIRA server is already working on this database.",
    "Stop it first, or give this one a database of its own (MIRA_DATABASE_URL).",
)


class ServerLock:
    """Held from `take` until `release`, or until another server has it."""

    def __init__(self, engine: Connect, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None
        self._look = anyio.Event()
        #: The connection answers one question at a time.
        self._asking = anyio.Lock()
        #: The number of this start; every commit of a conversation carries it.
        self.generation = 0

    @classmethod
    async def take(cls, engine: Connect, clock: Clock) -> Self:
        """Take the lock and begin a new generation.

        Raises StartupRefused if another server holds it, DatabaseUnavailable.
        """
        lock = cls(engine, clock)
        connection = await lock._lock()
        if connection is None:
            raise _ANOTHER
        try:
            lock.generation = await connection.fetchval(
                "update house set generation = generation + 1 returning generation"
            )
        except BaseException:
            connection.terminate()
            raise
        return lock

    async def _lock(self) -> asyncpg.Connection[asyncpg.Record] | None:
        """A new connection that has the lock; None if another session has it."""
        try:
            connection = await asyncpg.connect(
                **self._engine,
                timeout=10,
                command_timeout=10,
                server_settings={
                    "application_name": "mira-server-lock",
                    "tcp_keepalives_idle": "10",
                    "tcp_keepalives_interval": "5",
                    "tcp_keepalives_count": "3",
                },
            )
        except Exception as error:
            if is_away(error):
                raise DatabaseUnavailable("The database cannot be reached.") from error
            raise
        try:
            if not await connection.fetchval("select pg_try_advisory_lock($1)", LOCK):
                await self._compare(connection)
                connection.terminate()
                return None
        except BaseException as error:
            connection.terminate()
            if is_away(error):
                raise DatabaseUnavailable("The database went away.") from error
            raise
        connection.add_termination_listener(self._noticed)
        self._connection = connection
        return connection

    def _noticed(self, _connection: object) -> None:
        self.look()

    def look(self) -> None:
        """Have `keep` look at once whether the lock still holds."""
        self._look.set()

    async def keep(self) -> None:
        """Watch over the lock; when its connection is lost, get it back.

        A database that was restarted gives it back, and all goes on. Raises StartupRefused as
        soon as another server has it, or has had it: then this process must end. A session that
        holds it without a new generation is our own old one, which the database has not missed
        yet: it is waited for.
        """
        while True:
            with anyio.move_on_after(CHECK_EVERY):
                await self._look.wait()
            self._look = anyio.Event()
            try:
                await self.check()
            except DatabaseUnavailable:
                log.warning("server_lock_lost")
                await self._retake()
                log.info("server_lock_retaken")

    async def check(self) -> None:
        """Raise DatabaseUnavailable if the lock's connection is gone, StartupRefused if another
        server has taken over."""
        async with self._asking:
            connection = self._connection
            if connection is None or connection.is_closed():
                raise DatabaseUnavailable("The server's lock is lost.")
            try:
                await self._compare(connection)
            except Exception as error:
                if is_away(error):
                    connection.terminate()
                    raise DatabaseUnavailable("The server's lock is lost.") from error
                raise

    async def _compare(self, connection: asyncpg.Connection[asyncpg.Record]) -> None:
        """Raise StartupRefused if a server has begun after this one; nothing before `take`."""
        if not self.generation:
            return
        if await connection.fetchval("select generation from house") != self.generation:
            raise _ANOTHER

    async def _retake(self) -> None:
        until = self._clock.monotonic() + LINGER
        while True:
            try:
                if await self._lock() is not None:
                    await self.check()
                    return
                if self._clock.monotonic() > until:
                    raise _ANOTHER
            except DatabaseUnavailable:
                # It cannot be reached at all, which may take any time.
                until = self._clock.monotonic() + LINGER
            await self._clock.sleep(RETAKE_EVERY)

    async def release(self) -> None:
        """Give the lock back."""
        connection, self._connection = self._connection, None
        if connection is not None and not connection.is_closed():
            connection.remove_termination_listener(self._noticed)
            await connection.close(timeout=5)
