"""Connections and transactions: the one place where a transaction begins and a user is set.

Two roles, two pools: `Database.user` opens a transaction of `mira_app` as one user, under
row-level security; `Database.engine` opens one of `mira_engine`. Everything that a transaction
wrote is there after its block, or, if the block raised, nothing is. `Database.step` is a
transaction of one call and one round trip: what every turn goes through several times.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from types import TracebackType
from typing import Any, Protocol, Self
from uuid import UUID

import anyio
import asyncpg
import msgspec

from mira.errors import DatabaseUnavailable, MiraError, StartupRefused
from mira.store.pool import Connection, Pool
from mira.telemetry import logger

log = logger("store")

#: How long a caller waits for a free connection before it is told that there is none.
ACQUIRE_TIMEOUT = 10.0
#: How long one statement may take.
STATEMENT_TIMEOUT = 30.0
#: How long the end of a transaction may take once its block is over, even when cancelled.
END_TIMEOUT = 5.0

_PLANNED_ONCE = ", set_config('plan_cache_mode', 'force_generic_plan', true)"

Connect = Mapping[str, Any]
"""Arguments of asyncpg.connect: either {"dsn": …} or host, user and database."""

#: What asyncpg raises when the server is gone, going, not there yet, or can for the present not do
#: what nobody is to blame for: full, read-only, out of connections, a deadlock, a broken disk.
_AWAY = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.TransactionRollbackError,
    asyncpg.PostgresSystemError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    ConnectionError,
    OSError,
    TimeoutError,
    ssl.SSLError,
)

#: What it answers to who connects with a wrong password, or to no database.
_NOT_LET_IN = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InsufficientPrivilegeError,
)


def is_away(error: BaseException) -> bool:
    """Whether `error` means that the database could not be reached or went away."""
    return isinstance(error, _AWAY)


class Statement(msgspec.Struct, frozen=True):
    """One statement to run in somebody else's transaction."""

    sql: str
    values: tuple[object, ...] = ()


class Caller(Protocol):
    """Where a function of the database can be called: in a transaction, or as one of its own."""

    async def call(self, function: str, user_id: UUID, *values: object) -> asyncpg.Record:
        """Call a function whose first argument is the user; its one row."""
        ...


class Tx:
    """A running transaction. Values go as parameters only; rows come as asyncpg records."""

    __slots__ = ("_after", "_connection")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._after: list[Callable[[], None]] = []

    async def call(self, function: str, user_id: UUID, *values: object) -> asyncpg.Record:
        """See Caller."""
        row = await self._connection.fetchrow(_call(function, len(values)), user_id, *values)
        assert row is not None
        return row

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

    def __init__(self, pool: Pool, begin: str) -> None:
        self._pool = pool
        self._begin = begin

    async def __aenter__(self) -> Tx:
        self._connection = await _borrow(self._pool)
        try:
            await self._connection.execute(self._begin)
        except BaseException as error:
            await _clean(self._pool, self._connection)
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
        if error is not None:
            await _clean(self._pool, self._connection)
            if is_away(error) and not isinstance(error, MiraError):
                raise DatabaseUnavailable("The database went away.") from error
            return
        try:
            # Shielded: what has been committed is also told (see after_commit), whoever leaves.
            with anyio.CancelScope(shield=True):
                await self._connection.execute("commit", timeout=END_TIMEOUT)
        except BaseException as failed:
            await _clean(self._pool, self._connection)
            if is_away(failed):
                raise DatabaseUnavailable("The database went away during a commit.") from failed
            raise
        self._pool.give_back(self._connection)
        for callback in self._tx._after:
            callback()


class _Step:
    """A transaction of one call. The user is set by the statement itself: the function gets its
    first argument from there, and so cannot begin before."""

    __slots__ = ("_pool",)

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def call(self, function: str, user_id: UUID, *values: object) -> asyncpg.Record:
        """See Caller. Raises DatabaseUnavailable; it is not known then whether it was done."""
        connection = await _borrow(self._pool)
        try:
            row = await connection.fetchrow(_step(function, len(values)), str(user_id), *values)
        except BaseException as error:
            await _clean(self._pool, connection)
            if is_away(error):
                raise DatabaseUnavailable("The database went away.") from error
            raise
        self._pool.give_back(connection)
        assert row is not None
        return row


@lru_cache(maxsize=64)
def _call(function: str, values: int) -> str:
    return f"select f.* from {function}($1{_places(values)}) f"  # noqa: S608


@lru_cache(maxsize=64)
def _step(function: str, values: int) -> str:
    return (
        "select f.* from set_config('app.user_id', $1, true) as me(id), "  # noqa: S608
        f"lateral {function}(me.id::uuid{_places(values)}) f"
    )


def _places(values: int) -> str:
    return "".join(f", ${number}" for number in range(2, values + 2))


async def _borrow(pool: Pool) -> Connection:
    try:
        return await pool.borrow()
    except (*_AWAY, *_NOT_LET_IN) as error:
        raise DatabaseUnavailable("The database cannot be reached.") from error


async def _clean(pool: Pool, connection: Connection) -> None:
    """Give back a connection on which something went wrong.

    Shielded: a cancelled turn must still give back a clean connection. A connection that does not
    end its transaction in time is dropped, never handed to the next user.
    """
    clean = False
    with anyio.CancelScope(shield=True), anyio.move_on_after(END_TIMEOUT):
        try:
            if not connection.is_closed():
                # Waits for a statement that is being cancelled; without a transaction it does
                # nothing.
                await connection.execute("rollback")
                clean = True
        except (*_AWAY, asyncpg.PostgresError) as error:
            log.warning("rollback_failed", error=type(error).__name__)
    if clean:
        pool.give_back(connection)
    else:
        pool.drop(connection)


class Database:
    """The two pools. Open with `Database.open`, close with `aclose`."""

    def __init__(self, app: Pool, engine: Pool) -> None:
        self._app = app
        self._engine = engine
        #: Calls of one user each, every one a transaction of its own (see Caller).
        self.step: Caller = _Step(app)

    @classmethod
    async def open(cls, app: Connect, engine: Connect, *, size: int = 16) -> Self:
        """Connect both roles; at most `size` connections for users and a quarter for the engine.

        Raises DatabaseUnavailable if the server cannot be reached, StartupRefused if it does not
        let one of the roles in.
        """
        pools = [
            Pool(_connecting(way), most, patience=ACQUIRE_TIMEOUT)
            for way, most in ((app, size), (engine, max(2, size // 4)))
        ]
        try:
            for pool in pools:
                pool.give_back(await _borrow(pool))
        except BaseException as error:
            for pool in pools:
                pool.terminate()
            if isinstance(error.__cause__, _NOT_LET_IN):
                raise StartupRefused(
                    "The database does not let mira_app or mira_engine in "
                    f"({type(error.__cause__).__name__}).",
                    "Check MIRA_DATABASE_URL_APP and MIRA_DATABASE_URL_ENGINE, or, without them, "
                    "that pg_hba.conf admits the roles with a password. A kept password that is "
                    "wrong is set anew after: mira secret delete postgres.mira_app (or _engine).",
                ) from error
            raise
        return cls(*pools)

    def user(self, user_id: UUID, *, planned_once: bool = False) -> AbstractAsyncContextManager[Tx]:
        """A transaction of one user: only that user's rows exist in it.

        `planned_once`: its statements are planned once for each connection, not for their values
        each time. That is for statements whose plan should be the same whatever is asked, such as
        a search's, of which half of the time went into planning.
        """
        # A UUID object prints as hex and dashes alone, so it is safe inside the statement; one
        # message instead of three round trips.
        begin = f"begin; select set_config('app.user_id', '{UUID(int=user_id.int)}', true)"
        return _Transaction(self._app, begin + _PLANNED_ONCE if planned_once else begin)

    def engine(self) -> AbstractAsyncContextManager[Tx]:
        """A transaction of the engine: outbox, dead letters, users and keys; no conversation."""
        return _Transaction(self._engine, "begin")

    def app_without_user(self) -> AbstractAsyncContextManager[Tx]:
        """A transaction of the app role in which no user is set: for the canary alone."""
        return _Transaction(self._app, "begin")

    def idle(self) -> tuple[int, int]:
        """Connections now open and idle in the pool for users, and open in all."""
        return self._app.idle, self._app.open

    async def aclose(self) -> None:
        """Close both pools within a bounded time; what does not close is dropped."""
        for pool in (self._app, self._engine):
            await pool.aclose(END_TIMEOUT)


def _connecting(way: Connect) -> Callable[[], Awaitable[Connection]]:
    async def connect() -> Connection:
        return await asyncpg.connect(
            **way,
            command_timeout=STATEMENT_TIMEOUT,
            timeout=ACQUIRE_TIMEOUT,
            server_settings={"application_name": "mira", "timezone": "UTC"},
        )

    return connect
