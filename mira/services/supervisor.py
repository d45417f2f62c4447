"""Keeps one server running: starts it, notices its death, starts it again, says so."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

import anyio
from anyio import to_thread

from mira.clock import Clock
from mira.errors import StartupRefused
from mira.services.children import Child
from mira.services.logs import LogFile
from mira.telemetry import logger

log = logger("services")


class State(StrEnum):
    STOPPED = "stopped"
    UP = "up"
    DOWN = "down"  #: It died and is being started again.
    FAILED = "failed"  #: It was given up.


@dataclass(frozen=True)
class RestartPolicy:
    """How a death is answered. Times in seconds.

    The pause before the n-th attempt in a row is `first * 2**(n-1)`, at most `ceiling`. A server
    that lived for `steady` seconds has a clean slate. After `attempts` in a row it is given up;
    None never gives up.
    """

    first: float = 0.1
    ceiling: float = 10.0
    steady: float = 60.0
    attempts: int | None = 8

    def pause(self, attempt: int) -> float:
        return float(min(self.ceiling, self.first * 2 ** min(attempt - 1, 30)))


class Supervisor:
    """Owns one server process through all its lives.

    `launch` starts the server and returns it once it is ready; when it raises, no process is
    left behind. Use from one event loop, in one thread.
    """

    def __init__(
        self,
        name: str,
        launch: Callable[[], Awaitable[Child]],
        *,
        clock: Clock,
        log_file: LogFile,
        policy: RestartPolicy,
        stop_steps: tuple[tuple[signal.Signals, float], ...],
    ) -> None:
        self.name = name
        self.state = State.STOPPED
        #: How often the server has died by itself.
        self.deaths = 0
        #: How often it was tried to start it again, failures included.
        self.attempts = 0
        #: Why it was given up; empty unless `state` is FAILED.
        self.reason = ""
        self._launch = launch
        self._clock = clock
        self._log_file = log_file
        self._policy = policy
        self._stop_steps = stop_steps
        self._child: Child | None = None
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Condition()

    @property
    def pid(self) -> int | None:
        """The process id of the running server; None while it is down."""
        return self._child.pid if self._child is not None and self.state is State.UP else None

    async def start(self) -> None:
        """Start the server and return when it is ready. Raises what `launch` raises."""
        if self._task is not None:
            raise RuntimeError(f"{self.name} was started twice")
        self._child = await self._launch()
        self.state = State.UP
        self._task = asyncio.create_task(self._run(), name=f"supervise {self.name}")
        log.info("service_up", service=self.name, pid=self._child.pid)

    async def stop(self) -> None:
        """End the server and its supervision; bounded, shielded and idempotent."""
        with anyio.CancelScope(shield=True):
            if self._task is not None:
                self._task.cancel()
                await asyncio.wait([self._task])
                self._task = None
            if self._child is not None:
                await self._child.stop(*self._stop_steps)
                self._child = None
            if self.state is not State.STOPPED:
                await self._become(State.STOPPED)
                log.info("service_stopped", service=self.name)

    async def wait_for(self, *states: State) -> State:
        """Wait until the server is in one of `states` and return which."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.state in states)
            return self.state

    async def died(self, seen: int = 0) -> int:
        """Wait until the server has died more often than `seen`; return how often."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.deaths > seen)
            return self.deaths

    async def _become(self, state: State) -> None:
        self.state = state
        async with self._changed:
            self._changed.notify_all()

    async def _run(self) -> None:
        """Watch the server and tend its log until it is given up or we are cancelled."""
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._tend_log)
                await self._watch()
                group.cancel_scope.cancel()
        except Exception as error:
            # A bug of ours must not look like a server that is still being looked after.
            log.error("supervisor_failed", service=self.name, exc_info=error)
            self.reason = "its supervision failed; the log says how"
            await self._become(State.FAILED)

    async def _watch(self) -> None:
        attempt = 0
        while self._child is not None:
            since = self._clock.monotonic()
            code = await self._child.wait()
            self.deaths += 1
            lived = self._clock.monotonic() - since
            attempt = 0 if lived >= self._policy.steady else attempt
            log.error("service_died", service=self.name, code=code, lived=round(lived, 1))
            await self._become(State.DOWN)
            attempt = await self._revive(attempt)

    async def _revive(self, attempt: int) -> int:
        """Start the server again, with pauses. Returns the attempts made in a row."""
        self._child = None
        reason = "it died again and again"
        while self._policy.attempts is None or attempt < self._policy.attempts:
            attempt += 1
            self.attempts += 1
            await self._clock.sleep(self._policy.pause(attempt))
            try:
                self._child = await self._launch()
            except (StartupRefused, OSError) as error:
                reason = str(error)
                log.error("service_not_revived", service=self.name, attempt=attempt, why=reason)
                continue
            await self._become(State.UP)
            log.warning("service_revived", service=self.name, attempt=attempt, pid=self._child.pid)
            return attempt
        self.reason = reason
        log.error("service_given_up", service=self.name, attempts=attempt)
        await self._become(State.FAILED)
        return attempt

    async def _tend_log(self) -> None:
        while True:
            await self._clock.sleep(60.0)
            await to_thread.run_sync(self._log_file.trim)
