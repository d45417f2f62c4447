"""A PostgreSQL of our own: made on first start, supervised, reachable through a socket only."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TypedDict

import anyio
from anyio import to_thread

from mira.clock import Clock
from mira.errors import StartupRefused
from mira.services.children import Child, start_child
from mira.services.cluster import make_cluster, part_of
from mira.services.home import Home
from mira.services.leftovers import end_leftovers
from mira.services.logs import LogFile
from mira.services.postgres_config import PORT, ROLES, forced
from mira.services.postgres_place import Place, look
from mira.services.process_table import processes, working_in
from mira.services.supervisor import RestartPolicy, State, Supervisor

DATABASE = "mira"

#: SIGINT: roll back what runs, write a checkpoint, end. SIGQUIT: end at once, recover next time.
STOP_STEPS = ((signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0))


class ConnectArguments(TypedDict):
    """What asyncpg.connect and asyncpg.create_pool take."""

    host: str
    port: int
    user: str
    database: str


class EmbeddedPostgres:
    """One PostgreSQL server on one home.

    The application's operating system user is let in as `postgres` (the owner: migrations only),
    `mira_app` and `mira_engine` by peer authentication; nobody else is let in at all. When this
    process dies, however it dies, the server shuts down in good order.
    """

    def __init__(
        self,
        home: Home,
        *,
        clock: Clock,
        durable: bool = True,
        max_connections: int = 100,
        policy: RestartPolicy | None = None,
        ready_within: float = 120.0,
    ) -> None:
        """Nothing is started yet. `durable=False` is for tests: fast, and lost in a power cut.

        `ready_within` is in seconds; recovery after a crash of the machine counts towards it.
        """
        self._home = home
        self._clock = clock
        self._durable = durable
        self._max_connections = max_connections
        self._ready_within = ready_within
        self._log_file = LogFile(home.path / "logs" / "postgres.log")
        self._place: Place | None = None
        self._supervisor = Supervisor(
            "postgres",
            self._launch,
            clock=clock,
            log_file=self._log_file,
            policy=policy or RestartPolicy(),
            stop_steps=STOP_STEPS,
        )

    @property
    def state(self) -> State:
        return self._supervisor.state

    @property
    def pid(self) -> int | None:
        """The process id of the running server; None while it is down."""
        return self._supervisor.pid

    @property
    def deaths(self) -> int:
        """How often the server has died by itself since `start`."""
        return self._supervisor.deaths

    @property
    def attempts(self) -> int:
        """How often it was tried to start the server again, failures included."""
        return self._supervisor.attempts

    def dsn(self, role: str, database: str = DATABASE) -> ConnectArguments:
        """Return how to connect as one of ROLES. Valid from `start` to `stop`."""
        if role not in ROLES:
            raise ValueError(f"{role} is not one of {', '.join(ROLES)}")
        return ConnectArguments(
            host=str(self._where.sockets), port=PORT, user=role, database=database
        )

    @property
    def programs(self) -> Path:
        """The directory of pg_dump, psql and the like, of the server's own version."""
        return self._where.programs

    async def start(self) -> None:
        """Make the database on first use, start the server, return when it takes connections.

        Ends what an earlier life has left behind first. Raises StartupRefused, with the server's
        last words where it spoke.
        """
        self._place = await to_thread.run_sync(look, self._home)
        started = False
        try:
            await self._end_leftovers()
            if not self._place.made:
                await make_cluster(
                    self._place.data,
                    self._place.programs,
                    self._place.account,
                    database=DATABASE,
                    durable=self._durable,
                    log=self._log_file,
                )
            await self._supervisor.start()
            started = True
        except OSError as error:
            raise StartupRefused(
                f"PostgreSQL cannot be started: {error}.", f"See {self._log_file.path}."
            ) from error
        finally:
            if not started:
                await self._discard_sockets()

    async def stop(self) -> None:
        """Shut the server down in good order; bounded, shielded and idempotent."""
        await self._supervisor.stop()
        await self._discard_sockets()

    async def died(self, seen: int = 0) -> int:
        """Wait until the server has died more often than `seen`; return how often."""
        return await self._supervisor.died(seen)

    async def failed(self) -> str:
        """Wait until the server has been given up, and return why. It is then time to end."""
        await self._supervisor.wait_for(State.FAILED)
        return self._supervisor.reason

    async def wait_up(self) -> None:
        """Wait until the server is up. Raises StartupRefused once it is given up or stopped."""
        if await self._supervisor.wait_for(State.UP, State.FAILED, State.STOPPED) is not State.UP:
            raise StartupRefused(
                f"PostgreSQL does not run: {self._supervisor.reason or 'it was stopped'}.",
                f"See {self._log_file.path}.",
            )

    async def healthy(self, within: float = 2.0) -> bool:
        """Whether the server is up and answers on its socket. Never raises."""
        return self._supervisor.pid is not None and await self._answers(within)

    @property
    def _where(self) -> Place:
        if self._place is None:
            raise RuntimeError("the embedded PostgreSQL was not started")
        return self._place

    async def _discard_sockets(self) -> None:
        if self._place is not None:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self._home.discard_sockets, self._place.sockets)

    async def _end_leftovers(self) -> None:
        place = self._where

        def find() -> list[int]:
            return processes(working_in(place.data, part_of(place.data)), "postgres")

        # A server that is shutting down already takes SIGINT as said before; to an orphan of a
        # dead one it means to give up its query, after which it sees that it is alone.
        await end_leftovers(
            "PostgreSQL",
            find,
            (*STOP_STEPS, (signal.SIGKILL, 5.0)),
            clock=self._clock,
            first=lambda: place.status()[0],
        )
        await to_thread.run_sync(place.discard_pid_file)

    async def _launch(self) -> Child:
        """Start one server process and wait until it is ready; leave none behind otherwise."""
        place = self._where
        await self._end_leftovers()
        await to_thread.run_sync(place.configure, self._max_connections, self._durable)
        offset = await to_thread.run_sync(self._log_file.size)
        child = await start_child(
            "postgres",
            [place.programs / "postgres", "-D", place.data, *forced(str(place.sockets))],
            log=self._log_file,
            death_signal="INT",
            account=place.account,
        )
        ready = False
        try:
            with anyio.move_on_after(self._ready_within):
                while child.returncode is None:
                    # Connecting is not enough: it could be another server that answers.
                    written = await to_thread.run_sync(place.status)
                    if written == (child.pid, "ready") and await self._answers(2.0):
                        ready = True
                        return child
                    await self._clock.sleep(0.01)
        finally:
            if not ready:
                await child.stop(*STOP_STEPS)
        words = await to_thread.run_sync(self._log_file.since, offset) or "it said nothing"
        raise StartupRefused(
            f"PostgreSQL did not start (exit code {child.returncode}): {words}",
            f"See {self._log_file.path}.",
        )

    async def _answers(self, within: float) -> bool:
        """Ask over the socket whether the server speaks TLS; any answer is a sign of life."""
        try:
            with anyio.fail_after(within):
                reader, writer = await asyncio.open_unix_connection(self._where.socket)
                try:
                    writer.write(b"\x00\x00\x00\x08\x04\xd2\x16\x2f")  # SSLRequest
                    return await reader.read(1) in (b"N", b"S")
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return False
