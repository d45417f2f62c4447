"""A Subcortex at work: real engine and books, a scripted model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import anyio

from mira.actors.runtime.system import ActorSystem, Kind
from mira.actors.subcortex import KIND, Model, Subcortex, SubcortexParts, consider
from mira.clock import AlarmClock, ManualClock
from mira.ids import SystemIds
from mira.llm.routing import Routing
from mira.llm.scripted import Answer, ScriptedProvider, says
from mira.messages.base import Address
from mira.messages.subcortex import Consider, Considered, Exchange, InContext
from mira.prompt.templates import Templates
from mira.store.database import Database
from tests.support.core import Bugs

#: Seconds that are waited for a Subcortex unless a test says otherwise.
DEADLINE = 1.5


def answer(
    *phrases: str, entities: tuple[str, ...] = (), keep: tuple[str, ...] = (),
    complexity: str = "complex",
) -> Answer:  # fmt: skip
    """What a model with good manners answers."""
    said = {
        "phrases": phrases, "entities": entities, "keep": keep, "complexity": complexity,
    }  # fmt: skip
    return says(json.dumps(said))


@dataclass
class Thinking:
    """A running engine with nothing but Subcortexes."""

    database: Database
    clock: AlarmClock
    system: ActorSystem
    model: ScriptedProvider
    bugs: list[Exception] = field(default_factory=list)

    async def consider(
        self, user_id: UUID, turn_id: UUID, words: str, *,
        said: tuple[tuple[str, str], ...] = (), memories: tuple[InContext, ...] = (),
        timeout: float = DEADLINE,
    ) -> Considered:  # fmt: skip
        message = Consider(
            turn_id=turn_id, words=words, memories=memories,
            exchanges=tuple(Exchange(user=user, assistant=reply) for user, reply in said),
        )  # fmt: skip
        return await consider(self.system, user_id, message, timeout=timeout)

    async def calls(self, user_id: UUID) -> list[dict[str, Any]]:
        """The calls in the books, once everything is written."""
        await self.system.workers.quiet()
        async with self.database.user(user_id) as tx:
            rows = await tx.fetch("select * from model_calls order by at, id")
        return [dict(row) for row in rows]

    async def asked(self) -> None:
        """Wait until the model is being asked."""
        with anyio.fail_after(30):
            while not self.model.open:
                await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def thinking(
    database: Database, *script: Answer, name: str = "scripted:script", window: int = 200_000,
    clock: AlarmClock | None = None, model: Model | None = None, idle: float = 60.0,
) -> AsyncIterator[Thinking]:  # fmt: skip
    """Subcortexes on a clock that stands still; `model` in place of the scripted one."""
    clock, ids = clock or ManualClock(), SystemIds()
    observer = Bugs()
    scripted = ScriptedProvider(script or [says("")], clock=clock, name=name, window=window)
    parts = SubcortexParts(
        database=database, clock=clock, ids=ids, templates=Templates(),
        model=model or Routing([scripted], clock, ids),
    )  # fmt: skip

    def made(address: Address) -> Subcortex:
        return Subcortex(parts, UUID(address.key))

    system = ActorSystem(
        clock=clock, ids=ids, observer=observer,
        kinds={KIND: Kind(factory=made, rank=3, idle=idle)},
    )  # fmt: skip
    async with system.running():
        yield Thinking(database, clock, system, scripted, observer.seen)
