"""Who hears of an event: static, and readable in one place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from anyio import create_task_group

from mira.errors import DeadlineExceeded
from mira.messages.base import Event

from .durable import DurableMessage
from .observer import report

if TYPE_CHECKING:
    from .actor import Context
    from .system import ActorSystem


class Contribution(msgspec.Struct, frozen=True):
    """What a contributor wants to be in the transaction of its event."""

    rows: tuple[object, ...] = ()
    durable: tuple[DurableMessage, ...] = ()


class HandlerFailure(msgspec.Struct, frozen=True):
    """A handler of an event that failed or was too slow."""

    event: Event
    handler: str
    error: Exception


#: Pure: from an event to what belongs in its transaction.
Contributor: TypeAlias = Callable[[Any], Contribution | None]
#: Idempotent, quick, without a model call: what must have happened before the publisher goes on.
Handler: TypeAlias = "Callable[[Any, Context], Awaitable[None]]"


class Route(msgspec.Struct, frozen=True):
    """The way of one event: contributors before the commit, then stages after it.

    Stages run one after another, the members of a stage at the same time.
    """

    contributors: tuple[Contributor, ...] = ()
    stages: tuple[tuple[Handler, ...], ...] = ()


class Routes:
    """The routes of all events, by their exact type. An event without one is heard by nobody."""

    def __init__(self, routes: Mapping[type[Event], Route] | None = None) -> None:
        self._routes = dict(routes or {})

    def __getitem__(self, event: type[Event]) -> Route:
        return self._routes.get(event, _NOWHERE)

    def contribute(self, event: Event, system: ActorSystem) -> tuple[Contribution, ...]:
        """Ask every contributor in order; one that fails is reported and left out."""
        given = []
        for contributor in self[type(event)].contributors:
            try:
                contribution = contributor(event)
            except Exception as error:
                report(system.observer.handler_failed, event, name_of(contributor), error)
            else:
                if contribution is not None:
                    given.append(contribution)
        return tuple(given)

    async def publish(
        self, event: Event, ctx: Context, system: ActorSystem
    ) -> tuple[HandlerFailure, ...]:
        """Run every stage; all handlers have ended when this returns.

        Each has `barrier_timeout` seconds. One that fails or is too slow stops nobody; it is
        reported, and returned in the order of the routes.
        """
        failures: list[HandlerFailure] = []
        for stage in self[type(event)].stages:
            found: dict[int, HandlerFailure] = {}
            run = partial(_run, event, ctx, system, found)
            if len(stage) == 1:
                await run(0, stage[0])
            else:
                async with create_task_group() as group:
                    for position, handler in enumerate(stage):
                        group.start_soon(run, position, handler)
            failures += (found[position] for position in sorted(found))
        return tuple(failures)


_NOWHERE = Route()


async def _run(
    event: Event,
    ctx: Context,
    system: ActorSystem,
    found: dict[int, HandlerFailure],
    position: int,
    handler: Handler,
) -> None:
    error: Exception | None = None
    try:
        with system.ticker.limit(system.settings.barrier_timeout) as scope:
            await handler(event, ctx)
        if scope.cancelled_caught:
            error = DeadlineExceeded(f"{name_of(handler)} was too slow")
    except Exception as raised:
        error = raised
    if error is not None:
        report(system.observer.handler_failed, event, name_of(handler), error)
        found[position] = HandlerFailure(event, name_of(handler), error)


def name_of(function: Callable[..., object]) -> str:
    """What a function is called in logs."""
    return getattr(function, "__qualname__", type(function).__name__)
