"""The conversation core without its surfaces: real database, real engine, a scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import anyio
import asyncpg

from mira.actors.conversations import Conversations
from mira.actors.copies import EventCopies
from mira.actors.feeds import Feeds
from mira.actors.memory_keeper_parts import KeeperParts
from mira.actors.memory_keeper_questions import Questions
from mira.actors.parts import Parts, Stage
from mira.actors.recall import Recall
from mira.actors.recall_searches import Searches
from mira.actors.renders import Renders
from mira.actors.runtime.actor import Context
from mira.actors.runtime.observer import Observer
from mira.actors.runtime.routes import Route, Routes
from mira.actors.runtime.system import ActorSystem, EngineSettings
from mira.actors.subcortex import SubcortexParts
from mira.actors.tool_run import NoTools, Tools
from mira.actors.wiring import kinds, routes
from mira.clock import SystemClock
from mira.ids import SystemIds
from mira.llm.routing import Routing
from mira.llm.scripted import Answer, ScriptedProvider, says
from mira.memory.indexing import HistoryIndex, NoEncoders
from mira.memory.memories import Memories
from mira.memory.passages import PassageSearch
from mira.memory.quoting import TEMPLATES
from mira.memory.steps import Steps
from mira.messages.base import Address, Event, Message
from mira.messages.stream import AnyTurnEvent
from mira.prompt.composer import Composer
from mira.prompt.templates import Templates
from mira.store.cache import Cache
from mira.store.database import Database
from mira.store.outbox import PostgresOutbox
from tests.conftest import Place

#: What a quiet keeper's model tells of a segment.
TOLD = (
    '{"trace": "I was asked something. I answered. We left it there.", '
    '"precis": "I was asked something. I answered.", "title": "A short talk", "complexity": 0.5}'
)


class JumpingClock(SystemClock):
    """The machine's clocks, whose date can be put forward."""

    def __init__(self) -> None:
        self._ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self._ahead

    def jump(self, **span: float) -> None:
        """Go on by so much, as for timedelta."""
        self._ahead += timedelta(**span)


class Listening(Routes):
    """The routes of the house, with somebody at their end who writes down every event."""

    def __init__(self, routes: Routes) -> None:
        super().__init__()
        self._inner = routes
        self.heard: list[Event] = []

    def __getitem__(self, event: type[Event]) -> Route:
        route = self._inner[event]
        return Route(contributors=route.contributors, stages=(*route.stages, (self._write,)))

    async def _write(self, event: Event, _ctx: Context) -> None:
        self.heard.append(event)

    def names(self) -> list[str]:
        return [type(event).__name__ for event in self.heard]


class Bugs(Observer):
    """What the engine took for a bug."""

    def __init__(self) -> None:
        self.seen: list[Exception] = []

    def actor_failed(self, address: Address, message: Message | None, error: Exception) -> None:
        self.seen.append(error)

    def job_failed(self, address: Address, kind: str, error: Exception) -> None:
        self.seen.append(error)


@dataclass
class Core:
    """A running core of one server."""

    database: Database
    system: ActorSystem
    conversations: Conversations
    feeds: Feeds
    model: ScriptedProvider
    parts: Parts
    bugs: list[Exception] = field(default_factory=list)
    events_heard: Listening = field(default_factory=lambda: Listening(routes()))

    async def say(self, user_id: UUID, content: str) -> UUID:
        receipt = await self.conversations.accept(
            user_id, request_id=str(SystemIds().new()), content=content
        )
        return receipt.turn_id

    async def events(self, user_id: UUID, turn_id: UUID) -> list[AnyTurnEvent]:
        """All events of a turn, to its end."""
        async with self.conversations.follow(user_id, turn_id) as batches:
            return [event async for batch in batches for event in batch]

    async def ask(self, user_id: UUID, content: str) -> AnyTurnEvent:
        """Say something and wait for how the turn ends."""
        return (await self.events(user_id, await self.say(user_id, content)))[-1]


def quiet_keeper(database: Database) -> KeeperParts:
    """A keeper of memories whose model finds nothing to remember, and tells every segment alike."""
    clock, ids, encoders = SystemClock(), SystemIds(), NoEncoders()
    model = Routing([ScriptedProvider([says("[]")], clock=clock)], clock, ids)
    telling = Routing([ScriptedProvider([says(TOLD)], clock=clock)], clock, ids)
    return KeeperParts(
        database=database,
        clock=clock,
        ids=ids,
        memories=Memories(database, encoders, None, clock, ids),
        steps=Steps(database, encoders, clock, ids),
        encoders=encoders,
        questions=Questions(model, Templates(TEMPLATES), ids),
        telling=Questions(telling, Templates(TEMPLATES), ids),
        batches=lambda: None,
    )


@asynccontextmanager
async def running_core(
    database: Database,
    *script: Answer,
    tools: Tools | None = None,
    reached: Callable[[Stage, UUID], None] = lambda _stage, _turn: None,
    grace: float = 5.0,
    index: HistoryIndex | None = None,
    keeper: KeeperParts | None = None,
    subcortex: Sequence[Answer] = (says("{}"),),
    clock: SystemClock | None = None,
    model: ScriptedProvider | None = None,
) -> AsyncIterator[Core]:
    """A core on `database` whose pauses after failures are short; `model` in place of a script."""
    clock, ids, bugs = clock or SystemClock(), SystemIds(), Bugs()
    cache = Cache(None, clock)
    copies = EventCopies(cache, clock)
    feeds = Feeds(clock, copies)
    model = model or ScriptedProvider(script, clock=clock)
    async with database.engine() as tx:
        generation = await tx.value("update house set generation = generation + 1 returning *")
        generation = await tx.value("select generation from house")
    parts = Parts(
        database=database,
        clock=clock,
        ids=ids,
        model=Routing([model], clock, ids),
        composer=Composer(Templates()),
        tools=tools or NoTools(),
        feeds=feeds,
        generation=generation,
        history_tokens=4000,
        max_output_tokens=1000,
        reached=reached,
        stale=lambda: None,
        notice=lambda: None,
        recall=Recall(
            Searches(
                database=database,
                memories=Memories(database, NoEncoders(), None, clock, ids),
                passages=PassageSearch(database, NoEncoders()),
            ),
            None,
            clock,
            ids,
        ),
        renders=Renders(cache),
        segment_idle=7200.0,
        subcortex_deadline=1.5,
    )
    considering = SubcortexParts(
        database=database,
        clock=clock,
        ids=ids,
        model=Routing([ScriptedProvider(list(subcortex), clock=clock)], clock, ids),
        templates=Templates(),
    )
    listening = Listening(routes())
    system = ActorSystem(
        clock=clock,
        ids=ids,
        kinds=kinds(
            parts,
            index or HistoryIndex(database, NoEncoders(), clock),
            keeper or quiet_keeper(database),
            considering,
            60.0,
        ),
        routes=listening,
        outbox=PostgresOutbox(database, clock),
        observer=bugs,
        settings=EngineSettings(
            stop_grace=grace, poll_every=1.0, first_back_off=0.05, outage_back_off=0.2
        ),
    )
    conversations = Conversations(
        system=system, database=database, clock=clock, ids=ids, feeds=feeds, copies=copies,
        generation=generation, waiting_turns=64, reached=reached,
    )  # fmt: skip
    async with system.running():
        yield Core(database, system, conversations, feeds, model, parts, bugs.seen, listening)


@asynccontextmanager
async def owner_of(place: Place) -> AsyncIterator[Any]:
    """A connection of the owner of a test's database, to another database of the server."""
    owner: Any = await asyncpg.connect(**{**place.owner, "database": "postgres"})
    try:
        yield owner
    finally:
        await owner.close()


async def as_owner(place: Place, *statements: str) -> None:
    """Run statements as the owner of a test's database, from another database of the server."""
    async with owner_of(place) as owner:
        for statement in statements:
            await owner.execute(statement.replace("$db", place.owner["database"]))


async def cut_off(place: Place) -> None:
    """The program's roles lose the database, and cannot come back. A connection that was about to
    be opened may have passed the check before the right was taken away: it is waited for and
    ended as well (while it starts it belongs to no database yet)."""
    async with owner_of(place) as owner:
        name = place.owner["database"]
        await owner.execute(f"revoke connect on database {name} from public")
        while await owner.fetchval(
            "select count(case when datname = $1 then pg_terminate_backend(pid) end) + count(*)"
            " from pg_stat_activity where backend_type = 'client backend'"
            " and (datname = $1 or datname is null)",
            name,
        ):
            await anyio.lowlevel.checkpoint()


async def let_back(place: Place) -> None:
    await as_owner(place, "grant connect on database $db to public")
