"""One serving process per database: a session lock on a connection of its own.

Taking the lock also raises the house's generation: writes that carry an older one are refused, so
that a server that slept through its replacement cannot write when it wakes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import asyncpg

from mira.errors import DatabaseUnavailable, StartupRefused
from mira.store.database import Connect, is_away

_LOCK = 0x4D495241_02


class ServerLock:
    """Held from `take` until `release` or until its connection is lost."""

    def __init__(
        self,
        connection: asyncpg.Connection[asyncpg.Record],
        generation: int,
        lost: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._on_end = lambda _connection: lost()
        connection.add_termination_listener(self._on_end)
        #: The number of this start; every commit of a conversation carries it.
        self.generation = generation

    @classmethod
    async def take(cls, engine: Connect, lost: Callable[[], None]) -> Self:
        """Take the lock; call `lost` once if its connection ends before `release`.

        Raises StartupRefused if another server holds it.
        """
        try:
            connection = await asyncpg.connect(
                **engine,
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
            if not await connection.fetchval("select pg_try_advisory_lock($1)", _LOCK):
                raise StartupRefused(
                    "Another MIRA server is already working on this database.",
                    "Stop it first, or give this one a database of its own (MIRA_DATABASE_URL).",
                )
            generation = await connection.fetchval(
                "update house set generation = generation + 1 returning generation"
            )
        except BaseException:
            connection.terminate()
            raise
        return cls(connection, generation, lost)

    async def check(self) -> None:
        """Ask the server over the lock's connection. Raises DatabaseUnavailable if it is gone."""
        try:
            await self._connection.execute("select 1")
        except Exception as error:
            if is_away(error):
                raise DatabaseUnavailable("The server's lock is lost.") from error
            raise

    async def release(self) -> None:
        """Give the lock back. `lost` is not called any more."""
        if not self._connection.is_closed():
            self._connection.remove_termination_listener(self._on_end)
            await self._connection.close(timeout=5)
