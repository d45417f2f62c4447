"""Whether the parts work: each asked concurrently, within a deadline, at most once a second."""

from __future__ import annotations

import anyio

from mira.clock import Clock
from mira.telemetry import logger
from mira.web.models import Component, Readiness
from mira.web.services import Check

log = logger("health")

#: Anyone may ask without a key, so the answer is kept for so long.
_MEMORY = 1.0


class Health:
    """Runs the checks."""

    def __init__(self, checks: tuple[Check, ...], clock: Clock, within: float) -> None:
        self._checks = checks
        self._clock = clock
        self._within = within
        self._asking = anyio.Lock()
        self._last: Readiness | None = None
        self._until = 0.0

    async def ready(self) -> Readiness:
        """How the parts are: `down` if a critical one is, `degraded` if only another one is."""
        async with self._asking:
            if self._last is None or self._clock.monotonic() >= self._until:
                self._last = await self._ask()
                self._until = self._clock.monotonic() + _MEMORY
            return self._last

    async def _ask(self) -> Readiness:
        found: dict[str, Component] = {}

        async def one(check: Check) -> None:
            found[check.name] = await self._component(check)

        async with anyio.create_task_group() as tasks:
            for check in self._checks:
                tasks.start_soon(one, check)
        components = tuple(found[check.name] for check in self._checks)
        down = [c for c in components if c.status != "ok"]
        status = "down" if any(c.critical for c in down) else "degraded" if down else "ok"
        return Readiness(status=status, components=components)

    async def _component(self, check: Check) -> Component:
        began = self._clock.monotonic()
        status, detail = "down", f"no answer within {self._within:g} s"
        with anyio.move_on_after(self._within):
            try:
                detail = await check.run()
                status = "ok"
            except Exception as error:
                # What it says may hold an address or a path; its kind is enough here.
                detail = type(error).__name__
                log.warning("check_failed", component=check.name, error=detail)
        return Component(
            name=check.name,
            status=status,
            critical=check.critical,
            latency_ms=round((self._clock.monotonic() - began) * 1000, 3),
            detail=detail,
        )
