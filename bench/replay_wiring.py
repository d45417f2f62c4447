"""The house without its web, for one process that replays chats: real Postgres and Valkey, real
embedding model and names, real engine and keeper. Of the world outside only the provider is a
double, on a port, and the clock is that of the chats.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path
from uuid import UUID

from pydantic import SecretStr

from bench.provider_double import ProviderDouble
from bench.replay_answers import Rules
from bench.replay_clock import ReplayClock
from bench.replay_house import Failures, House
from mira.actors.conversations import Conversations
from mira.actors.copies import EventCopies
from mira.actors.feeds import Feeds
from mira.actors.parts import Parts
from mira.actors.renders import Renders
from mira.actors.runtime.system import ActorSystem
from mira.actors.subcortex import SubcortexParts
from mira.actors.wiring import kinds, routes
from mira.app.remembering import Remembering, remember
from mira.app.resources import Resources, open_resources
from mira.ids import SystemIds
from mira.llm import models as llm_models
from mira.llm.models import Models
from mira.prompt.composer import Composer
from mira.prompt.templates import Templates
from mira.settings import Settings
from mira.store.outbox import PostgresOutbox
from mira.store.server_lock import ServerLock

#: Seconds after which something that is waited for has failed, on a busy machine, with the double
#: and with the local model.
PATIENCE, LOCAL_PATIENCE = 600.0, 1800.0


@asynccontextmanager
async def house(
    start: datetime,
    *,
    local: bool = False,
    rules: Rules | None = None,
    live: int | None = None,
    prepare: Callable[[Path], None] = lambda _home: None,
) -> AsyncIterator[House]:
    """Start everything in a temporary home, on a clock that begins at `start`, and end it
    afterwards.

    `rules`: how the double answers. `local`: the local model does instead. `live`: the tokens of
    live turns that call for a brief, in place of the usual. `prepare` is given the home before
    anything is in it.
    """
    clock, ids = ReplayClock(), SystemIds()
    clock.start(start)
    base = Path(tempfile.mkdtemp(prefix="mira-bench-", dir="/tmp"))
    rules = rules or Rules()
    double = ProviderDouble(rules, keep_requests=8)
    rules.body = lambda: double.bodies[-1]
    async with AsyncExitStack() as stack:
        stack.callback(shutil.rmtree, base, ignore_errors=True)
        prepare(base)
        await stack.enter_async_context(double)
        settings = _settings(base, None if local else double.url, live)
        resources = await stack.enter_async_context(open_resources(settings, clock, ids))
        lock = await ServerLock.take(resources.engine, clock)
        stack.push_async_callback(lock.release)
        models = await llm_models.build(settings, resources.secrets.get, clock, ids)
        stack.push_async_callback(models.aclose)
        memory = remember(resources, models)
        stack.push_async_callback(memory.aclose)
        await memory.warm()
        await models.for_purpose("conversation").chain[0].warm()
        failures = Failures()
        system, conversations = _core(resources, lock.generation, models, memory, failures)
        await stack.enter_async_context(system.running())
        yield House(
            settings, clock, resources.database, system, conversations, double, rules, failures,
            LOCAL_PATIENCE if local else PATIENCE, ids,
        )  # fmt: skip


def _settings(home: Path, url: str | None, live: int | None) -> Settings:
    """The usual settings, whatever the environment says, with a key for the double or without."""
    usual = {
        name: one.get_default(call_default_factory=True)
        for name, one in Settings.model_fields.items()
    }
    given: dict[str, object] = {"home": home, "user": "replay"}
    if live is not None:
        given["history_tokens"] = live
    if url is not None:
        key = SecretStr("sk-bench-not-a-real-key")
        given |= {"anthropic_api_key": key, "anthropic_base_url": url}
    return Settings.model_construct(**{**usual, **given})


def _core(
    resources: Resources, generation: int, models: Models, memory: Remembering, failures: Failures
) -> tuple[ActorSystem, Conversations]:
    """Engine and conversations, wired as the server wires them."""
    settings, clock, database = resources.settings, resources.clock, resources.database
    ids = resources.ids
    copies, templates = EventCopies(resources.cache, clock), Templates()
    feeds = Feeds(clock, copies)
    parts = Parts(
        database=database,
        clock=clock,
        ids=ids,
        model=models.for_purpose("conversation"),
        composer=Composer(templates),
        tools=memory.tools,
        feeds=feeds,
        generation=generation,
        history_tokens=settings.history_tokens,
        max_output_tokens=settings.max_output_tokens,
        reached=_unheard,
        stale=lambda: None,
        notice=lambda: models.notice,
        recall=memory.recall,
        renders=Renders(resources.cache),
        segment_idle=settings.segment_minutes * 60,
        subcortex_deadline=settings.subcortex_deadline,
        considers=lambda: not models.for_purpose("subcortex").name.startswith("local:"),
        max_summaries=settings.summaries_shown,
        primer=settings.primer,
    )
    considering = SubcortexParts(
        database=database, clock=clock, ids=ids, model=models.for_purpose("subcortex"),
        templates=templates,
    )  # fmt: skip
    system = ActorSystem(
        clock=clock,
        ids=ids,
        kinds=kinds(parts, memory.index, memory.keeper, considering, settings.passivate_after),
        routes=routes(),
        outbox=PostgresOutbox(database, clock),
        observer=failures,
    )
    conversations = Conversations(
        system=system, database=database, clock=clock, ids=ids, feeds=feeds, copies=copies,
        generation=generation, waiting_turns=settings.waiting_turns, reached=_unheard,
    )  # fmt: skip
    return system, conversations


def _unheard(_stage: object, _turn_id: UUID) -> None:
    """Stages of turns stand with the turns themselves."""
