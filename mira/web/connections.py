"""The open WebSockets: counted, bounded, dropped when slow, told when the server stops."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

import anyio

from mira.clock import Clock
from mira.errors import RateLimited, Unavailable
from mira.messages.wire import FrameError, Shutdown
from mira.telemetry import logger
from mira.web.services import Limits

log = logger("web")

#: How often slow connections are looked for.
_SWEEP = 1.0

GOING_AWAY = 1001
POLICY = 1008
TOO_BIG = 1009
INTERNAL = 1011
TRY_LATER = 1013
UNAUTHORIZED = 4401


@dataclass(frozen=True, slots=True)
class End:
    """Why the server closes a connection: a last frame, a close code, a reason."""

    code: int
    reason: str
    frame: FrameError | Shutdown | None = None


class Open(Protocol):
    """An open connection as its keeper sees it."""

    user_id: UUID | None
    #: When the send that is still going on began, or last made progress; None if none is.
    sending_since: float | None

    def end(self, why: End) -> None:
        """Close it; the first reason stands."""
        ...

    def slow(self) -> End:
        """Why it is dropped when it is too slow, with a hint where to resume."""
        ...


class Connections:
    """All open WebSockets of this process. `run` watches over them and must be running."""

    def __init__(self, clock: Clock, limits: Limits, stop: anyio.Event) -> None:
        self._clock = clock
        self._limits = limits
        self._stop = stop
        self._open: set[Open] = set()
        self._of_user: Counter[UUID] = Counter()
        self.frames_received = 0
        self.frames_sent = 0
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._open)

    def numbers(self) -> dict[str, float]:
        """For the metrics."""
        return {
            "ws_connections": len(self._open),
            "ws_frames_received_total": self.frames_received,
            "ws_frames_sent_total": self.frames_sent,
            "ws_slow_clients_dropped_total": self.dropped,
        }

    def add(self, connection: Open) -> None:
        """Count one more. Raises Unavailable when there are too many, or the server stops."""
        if self._stop.is_set():
            raise Unavailable("The server is stopping.")
        if len(self._open) >= self._limits.connections:
            raise Unavailable("There are too many connections.")
        self._open.add(connection)

    def claim(self, connection: Open, user_id: UUID) -> None:
        """It has signed in. Raises RateLimited when its user has too many."""
        if self._of_user[user_id] >= self._limits.connections_per_user:
            raise RateLimited("You have too many connections.", retry_after=10.0)
        self._of_user[user_id] += 1
        connection.user_id = user_id

    def remove(self, connection: Open) -> None:
        """It is over."""
        self._open.discard(connection)
        user_id = connection.user_id
        if user_id is not None:
            self._of_user[user_id] -= 1
            if not self._of_user[user_id]:
                del self._of_user[user_id]

    async def run(self) -> None:
        """Watch over the connections until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._tell_all)
            while True:
                await self._clock.sleep(_SWEEP)
                self._sweep()

    async def _tell_all(self) -> None:
        await self._stop.wait()
        after = self._limits.reconnect_after
        why = End(GOING_AWAY, "the server is stopping", Shutdown(reconnect_after=after))
        for connection in tuple(self._open):
            connection.end(why)

    def _sweep(self) -> None:
        now = self._clock.monotonic()
        for connection in tuple(self._open):
            since = connection.sending_since
            if since is not None and now - since > self._limits.send_within:
                self.dropped += 1
                log.info("slow_client_dropped", user_id=str(connection.user_id))
                connection.end(connection.slow())
