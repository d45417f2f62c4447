"""The server: resources, engine, tickers and the web, in one tree of tasks.

The web is a child that is asked to stop, never cancelled, and stops first; then the engine drains;
then what it stood on is closed. Whatever dies takes all of it down in the same order.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

import anyio
import uvloop
from anyio.abc import TaskGroup
from hypercorn.asyncio import serve as hypercorn_serve
from hypercorn.config import Config
from hypercorn.typing import ASGIFramework

from mira.actors.conversations import Conversations
from mira.actors.copies import EventCopies
from mira.actors.feeds import Feeds
from mira.actors.parts import Parts, Stage, StageObserver
from mira.actors.renders import Renders
from mira.actors.runtime.system import ActorSystem, EngineSettings
from mira.actors.subcortex import ASKING, SubcortexParts
from mira.actors.tool_run import Tools
from mira.actors.wiring import kinds, routes
from mira.app import banner
from mira.app.live_secrets import LiveSecrets
from mira.app.observing import LoggingObserver, numbers
from mira.app.remembering import Remembering, remember
from mira.app.resources import Resources, open_resources, refuse_if_public
from mira.errors import MiraError, StartupRefused, Unavailable
from mira.llm import models as llm_models
from mira.llm.models import Models
from mira.prompt.composer import Composer
from mira.prompt.templates import Templates
from mira.services import preflight
from mira.services.postgres import EmbeddedPostgres
from mira.settings import Settings
from mira.store import keys
from mira.store.outbox import PostgresOutbox
from mira.store.server_lock import ServerLock
from mira.telemetry import configure, fields, logger
from mira.web.app import build as build_web
from mira.web.services import Check, Limits, ModelInfo, WebServices

log = logger("app")

SWEEP_EVERY = 60.0
#: Turns that may run at the same time.
TURNS_AT_ONCE = 4096


@dataclass(frozen=True)
class Options:
    """What a caller may put in place of the usual: tools (None: those of the house), an ear for
    stages of turns, bounds."""

    tools: Tools | None
    reached: StageObserver
    limits: Limits


def _unheard(_stage: Stage, _turn_id: UUID) -> None:
    pass


def serve(
    settings: Settings,
    *,
    tools: Tools | None = None,
    reached: StageObserver | None = None,
    limits: Limits | None = None,
) -> int:
    """Run the server until it is told to stop; return the process's exit code.

    0 after an ordinary stop, 2 when the start was refused (the reason is on standard error), 1
    when something that it stands on was lost.
    """
    configure(settings.log_level)
    options = Options(tools, reached or _unheard, limits or Limits())
    try:
        preflight.check(settings)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_run(settings, options))
    except Exception as raised:
        error = _first(raised)
        if isinstance(error, StartupRefused):
            print(f"MIRA does not run: {error.detail}\n{error.remedy}", file=sys.stderr)  # noqa: T201
            return 2
        if isinstance(error, MiraError):
            print(f"MIRA stopped: {error.detail}", file=sys.stderr)  # noqa: T201
            return 1
        raise
    return 0


def _first(error: Exception) -> Exception:
    """The error in a group, if the group holds one alone."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


async def _run(settings: Settings, options: Options) -> None:
    async with open_resources(settings) as resources:
        lock = await ServerLock.take(resources.engine, resources.clock)
        try:
            models = await llm_models.build(
                settings, resources.secrets.get, resources.clock, resources.ids
            )
            memory = remember(resources, models)
            try:
                await _serve(resources, lock, models, memory, options)
            finally:
                await memory.aclose()
                with anyio.CancelScope(shield=True), anyio.move_on_after(5):
                    await models.aclose()
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(5):
                await lock.release()


async def _serve(
    resources: Resources,
    lock: ServerLock,
    models: Models,
    memory: Remembering,
    options: Options,
) -> None:
    settings, clock, database = resources.settings, resources.clock, resources.database
    copies = EventCopies(resources.cache, clock)
    feeds = Feeds(clock, copies)
    templates, renders = Templates(), Renders(resources.cache)
    parts = Parts(
        database=database,
        clock=clock,
        ids=resources.ids,
        model=models.for_purpose("conversation"),
        composer=Composer(templates),
        tools=options.tools or memory.tools,
        feeds=feeds,
        generation=lock.generation,
        history_tokens=settings.history_tokens,
        max_output_tokens=settings.max_output_tokens,
        reached=options.reached,
        stale=lock.look,
        notice=lambda: models.notice,
        recall=memory.recall,
        renders=renders,
        segment_idle=settings.segment_minutes * 60,
        subcortex_deadline=settings.subcortex_deadline,
        considers=lambda: not models.for_purpose("subcortex").name.startswith("local:"),
        max_summaries=settings.summaries_shown,
        primer=settings.primer,
    )
    considering = SubcortexParts(
        database=database,
        clock=clock,
        ids=resources.ids,
        model=models.for_purpose("subcortex"),
        templates=templates,
    )
    system = ActorSystem(
        clock=clock,
        ids=resources.ids,
        kinds=kinds(parts, memory.index, memory.keeper, considering, settings.passivate_after),
        routes=routes(),
        outbox=PostgresOutbox(database, clock),
        observer=LoggingObserver(),
        settings=EngineSettings(
            stop_grace=settings.stop_grace,
            durable_in_flight=TURNS_AT_ONCE,
            # Every turn asks once, and one that waits in line is late.
            jobs={ASKING: TURNS_AT_ONCE},
        ),
        carried=fields,
    )
    conversations = Conversations(
        system=system,
        database=database,
        clock=clock,
        ids=resources.ids,
        feeds=feeds,
        copies=copies,
        generation=lock.generation,
        waiting_turns=settings.waiting_turns,
        reached=options.reached,
    )
    stop = anyio.Event()
    admin_token = resources.ids.token(256)
    web = build_web(
        WebServices(
            conversations=conversations,
            memories=memory.memories,
            passages=memory.passages,
            renders=renders,
            database=database,
            cache=resources.cache,
            secrets=LiveSecrets(resources.secrets, models),
            clock=clock,
            ids=resources.ids,
            settings=settings,
            owner=resources.user.id,
            stop=stop,
            admin_token=admin_token,
            checks=_checks(resources, lock, memory),
            engine=lambda: numbers(system),
            models=lambda: _model_info(models),
            work_added=system.look_for_durable,
            limits=options.limits,
        )
    )
    async with anyio.create_task_group() as ears:
        # Outside the engine, so that a signal is heard while that drains.
        ears.start_soon(_stop_on_signal, stop, system.hurry)
        async with system.running(), anyio.create_task_group() as group:
            group.start_soon(_trip, stop)
            group.start_soon(lock.keep)
            group.start_soon(copies.run)
            group.start_soon(resources.secrets.tend)
            group.start_soon(_every, clock.sleep, SWEEP_EVERY, feeds.sweep)
            for server in resources.embedded:
                if isinstance(server, EmbeddedPostgres):
                    group.start_soon(_watch, server)
            group.start_soon(models.warm)
            group.start_soon(memory.warm)
            bound = await group.start(_web, web, settings, stop, group)
            await _announce(resources, models, settings, bound, admin_token)
        ears.cancel_scope.cancel()
    banner.take_word_back(settings.home)
    await copies.flush()


async def _web(
    web: ASGIFramework,
    settings: Settings,
    stop: anyio.Event,
    group: TaskGroup,
    *,
    task_status: anyio.abc.TaskStatus[str],
) -> None:
    """Serve until `stop`; then everything else ends. Never cancelled, only asked to stop."""
    config = Config()
    config.bind = [f"{settings.host}:{settings.port}"]
    config.accesslog = None
    config.errorlog = None
    config.graceful_timeout = settings.stop_grace
    config.shutdown_timeout = settings.stop_grace + 10
    config.websocket_max_message_size = 1024 * 1024
    config.include_server_header = False
    config.backlog = 2048
    sockets = config.create_sockets()
    listening = sockets.insecure_sockets[0]
    _notice_the_dead(listening)
    port = listening.getsockname()[1]
    config.bind = [f"fd://{listening.detach()}"]
    task_status.started(settings.model_copy(update={"port": port}).address)
    with anyio.CancelScope(shield=True):
        await hypercorn_serve(web, config, shutdown_trigger=stop.wait)
    group.cancel_scope.cancel()


def _notice_the_dead(listening: socket.socket) -> None:
    """Have the kernel end connections whose other side is gone, or takes nothing any more.

    Accepted connections inherit it. Pings of the protocol would not do: nobody counts the pongs.
    """
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", 30),
        ("TCP_KEEPINTVL", 10),
        ("TCP_USER_TIMEOUT", 60_000),
    ):
        if hasattr(socket, option):
            listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


async def _trip(stop: anyio.Event) -> None:
    """The death of any sibling stops the web too."""
    try:
        await stop.wait()
    finally:
        stop.set()


async def _stop_on_signal(stop: anyio.Event, hurry: Callable[[], None]) -> None:
    """The first signal stops the server, with grace for what runs; a second one takes that back."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            again = stop.is_set()
            log.info("stopping", signal=signal.Signals(number).name, at_once=again)
            stop.set()
            if again:
                hurry()


async def _every(
    sleep: Callable[[float], Awaitable[None]], seconds: float, act: Callable[[], object]
) -> None:
    while True:
        await sleep(seconds)
        act()


async def _watch(server: EmbeddedPostgres) -> None:
    raise Unavailable(f"The database does not come up again: {await server.failed()}")


async def _announce(
    resources: Resources, models: Models, settings: Settings, address: str, admin_token: str
) -> None:
    now = resources.clock.now()
    async with resources.database.engine() as tx:
        first = await keys.count_live(tx) == 0
        refuse_if_public(settings, 0 if first else 1)
        made = (
            await keys.create(
                tx, resources.ids, resources.user.id, name="first", scope="admin", now=now
            )
            if first
            else None
        )
        token = await keys.create_link(tx, resources.ids, resources.user.id, now)
    banner.announce(
        address=address,
        signin=f"{address}/signin/{token}",
        key=made.key if made else None,
        notice=models.notice,
    )
    # Last: whoever finds it may count on everything else.
    banner.leave_word(settings.home, address, admin_token)
    log.info("serving", address=address)


def _checks(resources: Resources, lock: ServerLock, memory: Remembering) -> tuple[Check, ...]:
    async def database() -> str:
        async with resources.database.engine() as tx:
            return f"PostgreSQL {str(await tx.value('show server_version')).split()[0]}"

    async def holding() -> str:
        await lock.check()
        return f"generation {lock.generation}"

    async def secrets() -> str:
        return f"{len(await resources.secrets.names())} secrets"

    async def cache() -> str:
        if not await resources.cache.ping():
            raise Unavailable("The cache does not answer; nothing is lost without it.")
        return "answers"

    async def embedding() -> str:
        return memory.encoders.current.model if memory.encoders.tried else "is being loaded"

    return (
        Check("database", database),
        Check("server_lock", holding),
        Check("secrets", secrets),
        Check("cache", cache, critical=False),
        Check("embedding", embedding, critical=False),
    )


def _model_info(models: Models) -> tuple[ModelInfo, ...]:
    return tuple(
        ModelInfo(
            purpose=purpose,
            model=", ".join(names),
            note=models.notice or "" if purpose == "conversation" else "",
        )
        for purpose, names in models.chosen().items()
    )
