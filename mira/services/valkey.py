"""A Valkey of our own: a cache without persistence, reachable through a socket only."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from urllib.parse import quote

import anyio
from anyio import to_thread

from mira.clock import Clock
from mira.errors import StartupRefused
from mira.services.binaries import valkey_server
from mira.services.children import Child, start_child
from mira.services.home import Home
from mira.services.leftovers import end_leftovers
from mira.services.logs import LogFile
from mira.services.process_table import processes, working_in
from mira.services.supervisor import RestartPolicy, State, Supervisor

_SOCKET = "valkey.sock"
_STOP_STEPS = ((signal.SIGTERM, 5.0),)


class EmbeddedValkey:
    """One Valkey server on one home. Its death loses nothing: it is started again, empty.

    It is never given up; while it is down, `url` names a socket that nobody answers on.
    """

    def __init__(
        self,
        home: Home,
        *,
        clock: Clock,
        memory: str = "64mb",
        policy: RestartPolicy | None = None,
        ready_within: float = 15.0,
    ) -> None:
        """Nothing is started yet. `memory` bounds the data; the least used goes first."""
        self._home = home
        self._clock = clock
        self._memory = memory
        self._ready_within = ready_within
        self._log_file = LogFile(home.path / "logs" / "valkey.log")
        self._sockets: Path | None = None
        self._supervisor = Supervisor(
            "valkey",
            self._launch,
            clock=clock,
            log_file=self._log_file,
            policy=policy or RestartPolicy(attempts=None),
            stop_steps=_STOP_STEPS,
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

    @property
    def url(self) -> str:
        """The address for valkey's `from_url`. Valid from `start` to `stop`."""
        return f"unix://{quote(str(self._socket))}"

    async def start(self) -> None:
        """Start the server and return when it answers. Raises StartupRefused."""
        self._sockets = await to_thread.run_sync(self._home.socket_directory, "run-v", _SOCKET)
        started = False
        try:
            await self._supervisor.start()
            started = True
        except OSError as error:
            raise StartupRefused(
                f"Valkey cannot be started: {error}.", f"See {self._log_file.path}."
            ) from error
        finally:
            if not started:
                await self._discard_sockets()

    async def stop(self) -> None:
        """End the server; bounded, shielded and idempotent."""
        await self._supervisor.stop()
        await self._discard_sockets()

    async def died(self, seen: int = 0) -> int:
        """Wait until the server has died more often than `seen`; return how often."""
        return await self._supervisor.died(seen)

    async def wait_up(self) -> None:
        """Wait until the server is up. Raises StartupRefused once it is stopped."""
        if await self._supervisor.wait_for(State.UP, State.FAILED, State.STOPPED) is not State.UP:
            raise StartupRefused("Valkey does not run.", f"See {self._log_file.path}.")

    async def healthy(self, within: float = 2.0) -> bool:
        """Whether the server is up and it is ours that answers. Never raises."""
        pid = self._supervisor.pid
        return pid is not None and await self._answering_pid(within) == pid

    @property
    def _socket(self) -> Path:
        if self._sockets is None:
            raise RuntimeError("the embedded Valkey was not started")
        return self._sockets / _SOCKET

    async def _discard_sockets(self) -> None:
        if self._sockets is not None:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self._home.discard_sockets, self._sockets)

    async def _launch(self) -> Child:
        """Start one server process and wait until it answers; leave none behind otherwise."""
        socket = self._socket
        # Two servers on one path would take the socket from each other without a word.
        await end_leftovers(
            "Valkey",
            lambda: processes(working_in(socket.parent), "valkey-server"),
            ((signal.SIGTERM, 3.0), (signal.SIGKILL, 3.0)),
            clock=self._clock,
        )
        await to_thread.run_sync(lambda: socket.unlink(missing_ok=True))
        program = await to_thread.run_sync(valkey_server)
        offset = await to_thread.run_sync(self._log_file.size)
        child = await start_child(
            "valkey",
            [program, "--port", "0", "--unixsocket", socket, "--unixsocketperm", "700",
             "--save", "", "--appendonly", "no", "--daemonize", "no", "--dir", socket.parent,
             "--maxmemory", self._memory, "--maxmemory-policy", "allkeys-lru",
             "--loglevel", "warning", "--logfile", ""],
            log=self._log_file,
        )  # fmt: skip
        ready = False
        try:
            with anyio.move_on_after(self._ready_within):
                while child.returncode is None:
                    if await self._answering_pid(1.0) == child.pid:
                        ready = True
                        return child
                    await self._clock.sleep(0.01)
        finally:
            if not ready:
                await child.stop(*_STOP_STEPS)
        words = await to_thread.run_sync(self._log_file.since, offset) or "it said nothing"
        raise StartupRefused(
            f"Valkey did not start (exit code {child.returncode}): {words}",
            f"See {self._log_file.path}.",
        )

    async def _answering_pid(self, within: float) -> int | None:
        """Return the process id that the server behind the socket gives; None if none answers."""
        try:
            with anyio.fail_after(within):
                reader, writer = await asyncio.open_unix_connection(self._socket)
                try:
                    writer.write(b"INFO server\r\n")
                    head = await reader.readline()
                    body = await reader.readexactly(int(head.removeprefix(b"$")))
                finally:
                    writer.close()
        except (OSError, TimeoutError, EOFError, ValueError):
            return None
        for line in body.decode("utf-8", "replace").splitlines():
            if line.startswith("process_id:"):
                return int(line.partition(":")[2])
        return None
