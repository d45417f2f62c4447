"""Routings on a clock that stands still until it is told to move, and one who listens to them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel

from mira.clock import ManualClock
from mira.errors import (
    MiraError,
    ProviderOutage,
)
from mira.ids import SeededIds
from mira.llm.base import (
    CallRecord,
    Finished,
    Request,
    StreamItem,
)
from mira.llm.health import Health
from mira.llm.routing import Policy, Routing
from mira.llm.scripted import Answer, ScriptedProvider
from mira.messages.content import Role, Said, Text

ASKED = Request(system=(), messages=(Said(role=Role.USER, blocks=(Text(text="Hello?"),)),))
DOWN = ProviderOutage("It is down.")


def model(clock: ManualClock, *answers: Answer, name: str = "first:one") -> ScriptedProvider:
    return ScriptedProvider(answers, clock=clock, name=name)


def routing(
    clock: ManualClock, *chain: Any, health: Health | None = None, **policy: Any
) -> Routing:
    return Routing(chain, clock, SeededIds(), health=health, policy=Policy(**policy))


class Reader:
    """Reads a stream in a task of its own while the test moves the clock."""

    def __init__(self) -> None:
        self.items: list[StreamItem] = []
        self.error: MiraError | None = None
        self.done = False
        self.calls: tuple[CallRecord, ...] = ()

    async def read(self, route: Routing) -> None:
        try:
            async with route.stream(ASKED) as items:
                try:
                    async for item in items:
                        self.items.append(item)
                finally:
                    self.calls = items.calls
        except MiraError as error:
            self.error = error
        self.done = True

    @property
    def finished(self) -> Finished:
        last = self.items[-1]
        assert isinstance(last, Finished)
        return last

    def of(self, kind: type[Any]) -> list[Any]:
        return [item for item in self.items if isinstance(item, kind)]


async def settle() -> None:
    """Let every task run until it waits for the clock or for good."""
    for _ in range(60):
        await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def reading(route: Routing) -> AsyncIterator[Reader]:
    reader = Reader()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader.read, route)
        await settle()
        yield reader
        tasks.cancel_scope.cancel()


async def heard(route: Routing, clock: ManualClock, *, seconds: float = 600) -> Reader:
    """The whole stream, with time running in tenths of seconds."""
    async with reading(route) as reader:
        for _ in range(int(seconds * 10)):
            if reader.done:
                break
            clock.advance(0.1)
            await settle()
        assert reader.done
    return reader
