"""Events: contributors before the commit, handlers after it."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from mira.actors.runtime.actor import Context
from mira.actors.runtime.durable import DurableMessage
from mira.actors.runtime.routes import Contribution, HandlerFailure, Route, Routes
from mira.errors import Conflict, DeadlineExceeded
from mira.messages.base import Event

from .parts import ONE, TWO, Book, Do, Note, Reports, system_of

pytestmark = pytest.mark.anyio


class Happened(Event, frozen=True, kw_only=True):
    n: int = 0


class Unheard(Event, frozen=True, kw_only=True):
    pass


def publishing(book: Book, event: Event, found: list[Any]) -> None:
    async def publish(ctx: Context) -> object:
        found.append(ctx.contribute(event))
        found.append(await ctx.publish(event))
        return None

    book.deeds["publish"] = publish


async def test_every_handler_has_ended_when_publish_returns_stage_after_stage() -> None:
    book, order = Book(), list[str]()

    def handler(name: str, steps: int) -> Any:
        async def handle(event: Happened, ctx: Context) -> None:
            order.append(f"{name} begins")
            for _ in range(steps):
                await checkpoint()
            order.append(f"{name} ends")

        return handle

    async def publish(ctx: Context) -> object:
        await ctx.publish(Happened())
        order.append("published")
        return None

    book.deeds["publish"] = publish
    routes = Routes(
        {Happened: Route(stages=((handler("a", 9), handler("b", 3)), (handler("c", 2),)))}
    )
    async with system_of(book, routes=routes).running() as system:
        await system.ask(ONE, Do(name="publish"), timeout=5)
    assert set(order[:2]) == {"a begins", "b begins"}
    assert order[2:] == ["b ends", "a ends", "c begins", "c ends", "published"]


async def test_a_handler_that_fails_or_dawdles_is_reported_and_stops_nobody() -> None:
    book, reports, found = Book(), Reports(), list[Any]()
    heard: list[str] = []

    async def fails(event: Happened, ctx: Context) -> None:
        raise ZeroDivisionError

    async def refuses(event: Happened, ctx: Context) -> None:
        raise Conflict

    async def dawdles(event: Happened, ctx: Context) -> None:
        await anyio.sleep_forever()

    async def works(event: Happened, ctx: Context) -> None:
        await ctx.ask(TWO, Note(n=event.n), timeout=1)
        heard.append("works")

    publishing(book, Happened(n=4), found)
    routes = Routes({Happened: Route(stages=((works, dawdles, fails), (refuses,), (works,)))})
    async with system_of(book, reports, routes=routes).running() as system:
        await system.ask(ONE, Do(name="publish"), timeout=5)
    assert heard == ["works", "works"]
    failures: tuple[HandlerFailure, ...] = found[1]
    assert [type(f.error) for f in failures] == [DeadlineExceeded, ZeroDivisionError, Conflict]
    assert [f.handler.rpartition(".")[2] for f in failures] == ["dawdles", "fails", "refuses"]
    assert len(reports.of("handler_failed")) == 3
    assert book.of("note") == [("a", 4), ("a", 4)]


async def test_contributors_give_what_belongs_in_the_transaction_and_one_that_fails_is_left_out(
) -> None:  # fmt: skip
    book, reports, found = Book(), Reports(), list[Any]()
    follow_up = DurableMessage(to=TWO, message=Note(n=1), lane="notes")

    def gives(event: Happened) -> Contribution:
        return Contribution(rows=(event.n,), durable=(follow_up,))

    def fails(event: Happened) -> Contribution:
        raise ZeroDivisionError

    publishing(book, Happened(n=3), found)
    routes = Routes({Happened: Route(contributors=(fails, lambda event: None, gives))})
    async with system_of(book, reports, routes=routes).running() as system:
        await system.ask(ONE, Do(name="publish"), timeout=5)
    assert found == [(Contribution((3,), (follow_up,)),), ()]
    assert len(reports.of("handler_failed")) == 1


async def test_an_event_without_a_route_is_heard_by_nobody() -> None:
    book, found = Book(), list[Any]()
    publishing(book, Unheard(), found)
    async with system_of(book).running() as system:
        await system.ask(ONE, Do(name="publish"), timeout=5)
    assert found == [(), ()]
