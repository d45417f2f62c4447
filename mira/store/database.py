"""Connections and transactions: the one place where a transaction begins and a user is set.

Two roles, two pools: `Database.user` opens a transaction of `mira_app` as one user, under
row-level security; `Database.engine` opens one of `mira_engine`. Everything that a transaction
wrote is there after its block, or, if the block raised, nothing is.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self
from uuid import UUID

import anyio
import asyncpg
import msgspec
from asyncpg.pool import PoolConnectionProxy

from mira.errors import DatabaseUnavailable, MiraError
from mira.telemetry import logger

log = logger("store")

#: How long a caller waits for a free connection before it is told that there is none.
ACQUIRE_TIMEOUT = 10.0
#: How long one statement may take.
STATEMENT_TIMEOUT = 30.0
#: How long the end of a transaction may take once its block is over, even when cancelled.
END_TIMEOUT = 5.0

Connect = Mapping[str, Any]
"""Arguments of asyncpg.connect: either {"dsn": …} or host, user and database."""

#: What asyncpg raises when the server is gone, going, or not there yet.
_AWAY = (
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    ConnectionError,
    OSError,
    TimeoutError,
    ssl.SSLError,
)


def is_away(error: BaseException) -> bool:
    """Whether `error` means that the database could not be reached or went away."""
    return isinstance(error, _AWAY)


class Statement(msgspec.Struct, frozen=True):
    """One statement to run in somebody else's transaction."""

    sql: str
    values: tuple[object, ...] = ()


class Tx:
    """A running transaction. Values go as parameters only; rows come as asyncpg records."""

    __slots__ = ("_after", "_connection")

    def __init__(self, connection: PoolConnectionProxy[asyncpg.Record]) -> None:
        self._connection = connection
        self._after: list[Callable[[], None]] = []

    async def fetch(self, sql: str, *values: object) -> list[asyncpg.Record]:
        return await self._connection.fetch(sql, *values)

    async def row(self, sql: str, *values: object) -> asyncpg.Record | None:
        return await self._connection.fetchrow(sql, *values)

    async def value(self, sql: str, *values: object) -> Any:
        return await self._connection.fetchval(sql, *values)

    async def execute(self, sql: str, *values: object) -> int:
        """Run one statement; return the number of rows that it touched."""
        tag = await self._connection.execute(sql, *values)
        count = tag.rsplit(" ", 1)[-1]
        return int(count) if count.isdigit() else 0

    async def many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        await self._connection.executemany(sql, rows)

    def after_commit(self, callback: Callable[[], None]) -> None:
        """Call `callback` once this transaction has committed; never if it has not."""
        self._after.append(callback)


class _Transaction(AbstractAsyncContextManager[Tx]):
    """`begin` to `commit`. Written out, since every turn passes here several times."""

    __slots__ = ("_begin", "_connection", "_pool", "_tx")

    def __init__(self, pool: asyncpg.Pool[asyncpg.Record], begin: str) -> None:
        self._pool = pool
        self._begin = begin

    async def __aenter__(self) -> Tx:
        try:
            self._connection = await self._pool.acquire(timeout=ACQUIRE_TIMEOUT)
        except _AWAY as error:
            raise DatabaseUnavailable("The database cannot be reached.") from error
        try:
            await self._connection.execute(self._begin)
        except BaseException as error:
            await self._release()
            if is_away(error):
                raise DatabaseUnavailable("The database went away.") from error
            raise
        self._tx = Tx(self._connection)
        return self._tx

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                await self._connection.execute("commit")
        except _AWAY as away:
            raise DatabaseUnavailable("The database went away during a commit.") from away
        finally:
            await self._release()
        if error is None:
            for callback in self._tx._after:
                callback()
        elif is_away(error) and not isinstance(error, MiraError):
            raise DatabaseUnavailable("The database went away.") from error

    async def _release(self) -> None:
        # Shielded: a cancelled turn must still give back a clean connection. A connection that
        # does not end its transaction in time is dropped, never handed to the next user.
        connection = self._connection
        with anyio.CancelScope(shield=True):
            clean = connection.is_closed()
            if not clean:
                with anyio.move_on_after(END_TIMEOUT):
                    try:
                        if connection.is_in_transaction():
                            await connection.execute("rollback")
                        clean = True
                    except (*_AWAY, asyncpg.PostgresError) as error:
                        log.warning("rollback_failed", error=type(error).__name__)
            if not clean:
                connection.terminate()
            await self._pool.release(connection, timeout=END_TIMEOUT)


class Database:
    """The two pools. Open with `Database.open`, close with `aclose`."""

    def __init__(
        self, app: asyncpg.Pool[asyncpg.Record], engine: asyncpg.Pool[asyncpg.Record]
    ) -> None:
        self._app = app
        self._engine = engine

    @classmethod
    async def open(cls, app: Connect, engine: Connect, *, size: int = 16) -> Self:
        """Connect both roles; at most `size` connections for users and a quarter for the engine.

        Raises DatabaseUnavailable if the server cannot be reached.
        """
        pools: list[asyncpg.Pool[asyncpg.Record]] = []
        try:
            for connect, most in ((app, size), (engine, max(2, size // 4))):
                pools.append(
                    await asyncpg.create_pool(
                        **connect,
                        min_size=min(2, most),
                        max_size=most,
                        max_inactive_connection_lifetime=300.0,
                        command_timeout=STATEMENT_TIMEOUT,
                        timeout=ACQUIRE_TIMEOUT,
                        reset=_no_reset,
                        server_settings={"application_name": "mira", "timezone": "UTC"},
                    )
                )
        except BaseException as error:
            for pool in pools:
                pool.terminate()
            if is_away(error):
                raise DatabaseUnavailable("The database cannot be reached.") from error
            raise
        return cls(*pools)

    def user(self, user_id: UUID) -> AbstractAsyncContextManager[Tx]:
        """A transaction of one user: only that user's rows exist in it."""
        # A UUID object prints as hex and dashes alone, so it is safe inside the statement; one
        # message instead of three round trips.
        return _Transaction(
            self._app, f"begin; select set_config('app.user_id', '{UUID(int=user_id.int)}', true)"
        )

    def engine(self) -> AbstractAsyncContextManager[Tx]:
        """A transaction of the engine: outbox, dead letters, users and keys; no conversation."""
        return _Transaction(self._engine, "begin")

    def app_without_user(self) -> AbstractAsyncContextManager[Tx]:
        """A transaction of the app role in which no user is set: for the canary alone."""
        return _Transaction(self._app, "begin")

    def idle(self) -> tuple[int, int]:
        """Connections now open and idle in the pool for users, and open in all."""
        return self._app.get_idle_size(), self._app.get_size()

    async def aclose(self) -> None:
        """Close both pools within a bounded time; what does not close is dropped."""
        for pool in (self._app, self._engine):
            with anyio.move_on_after(END_TIMEOUT, shield=True) as scope:
                await pool.close()
            if scope.cancelled_caught:
                pool.terminate()


async def _no_reset(_connection: object) -> None:
    """Nothing to reset: every setting here is local to its transaction, and no transaction takes
    a session lock, listens, or makes a temporary table."""
