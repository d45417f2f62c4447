"""Valkey: a cache that may vanish at any time. Nothing here raises because it is away."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import valkey.asyncio as valkey
from valkey.asyncio.retry import Retry
from valkey.backoff import NoBackoff
from valkey.exceptions import ValkeyError

from mira.clock import Clock
from mira.telemetry import logger

log = logger("cache")
T = TypeVar("T")

#: How long one call may take.
TIMEOUT = 1.0
#: After a failed call none is tried for so long: a dead cache must not cost every turn a time-out.
REST = 2.0


class Cache:
    """One client; `call` runs an operation, or returns a default when the cache is away."""

    def __init__(self, url: str | None, clock: Clock) -> None:
        self._clock = clock
        self._resting_until = 0.0
        self._client = (
            valkey.from_url(  # type: ignore[no-untyped-call]
                url,
                socket_timeout=TIMEOUT,
                socket_connect_timeout=TIMEOUT,
                retry=Retry(NoBackoff(), 1),
                health_check_interval=0,
            )
            if url
            else None
        )

    @property
    def away(self) -> bool:
        """Whether the last call failed, or there is no cache."""
        return self._client is None or self._clock.monotonic() < self._resting_until

    async def call(
        self, operation: Callable[[valkey.Valkey], Awaitable[T]], default: T, *, what: str
    ) -> T:
        """Run `operation` on the client; `default` if the cache is away. `what` is for the log."""
        if self._client is None or self.away:
            return default
        try:
            return await operation(self._client)
        except (ValkeyError, OSError, TimeoutError) as error:
            self._resting_until = self._clock.monotonic() + REST
            log.warning("cache_away", what=what, error=type(error).__name__)
            return default

    async def ping(self) -> bool:
        """Whether the cache answers now (asked even while resting)."""
        if self._client is None:
            return False
        try:
            alive = bool(await self._client.ping())
        except (ValkeyError, OSError, TimeoutError):
            return False
        self._resting_until = 0.0
        return alive

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()
