"""Actors and messages that the tests of the engine share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import anyio

from mira.actors.runtime.actor import Actor, Context
from mira.actors.runtime.observer import Observer
from mira.actors.runtime.system import ActorSystem, Kind
from mira.actors.runtime.testing import LoopClock
from mira.errors import Conflict, MiraError
from mira.ids import SeededIds
from mira.messages.base import Address, Message


class Note(Message, frozen=True, kw_only=True):
    """Written down; answered with how many have been."""

    n: int = 0


class Linger(Message, frozen=True, kw_only=True):
    """Keeps its handler waiting until it is cancelled or the log's gate opens."""

    n: int = 0


class Break(Message, frozen=True, kw_only=True):
    """A bug."""


class Refuse(Message, frozen=True, kw_only=True):
    """Refused, as callers may be."""


class Do(Message, frozen=True, kw_only=True):
    """Runs what the test has put under this name."""

    name: str


class Halt(Message, frozen=True, kw_only=True):
    """On the control lane: cancel what lingers."""


Deed = Callable[[Context], Awaitable[object]]


@dataclass
class Book:
    """What the actors of a test have done, and what they are to do."""

    entries: list[tuple[str, str, int]] = field(default_factory=list)
    deeds: dict[str, Deed] = field(default_factory=dict)
    load_errors: list[Exception] = field(default_factory=list)
    gate: anyio.Event = field(default_factory=anyio.Event)
    begun: anyio.Event = field(default_factory=anyio.Event)

    def of(self, what: str) -> list[tuple[str, int]]:
        return [(key, n) for kind, key, n in self.entries if kind == what]


class Scribe(Actor):
    """Writes down what it is told."""

    __slots__ = ("_address", "_book", "_busy", "_scope", "count")

    def __init__(self, address: Address, book: Book) -> None:
        self._address = address
        self._book = book
        self._busy = False
        self._scope: anyio.CancelScope | None = None
        self.count = 0

    def _write(self, what: str, n: int = 0) -> None:
        self._book.entries.append((what, self._address.key, n))

    async def load(self, ctx: Context) -> None:
        if self._book.load_errors:
            raise self._book.load_errors.pop(0)
        self._write("load")

    async def receive(self, message: Message, ctx: Context) -> object:
        assert not self._busy, "two messages at once"
        self._busy = True
        try:
            return await self._handle(message, ctx)
        finally:
            self._busy = False

    async def _handle(self, message: Message, ctx: Context) -> object:
        match message:
            case Note(n=n):
                self.count += 1
                self._write("note", n)
                return self.count
            case Linger(n=n):
                self._write("linger", n)
                self._book.begun.set()
                with anyio.CancelScope() as self._scope:
                    await self._book.gate.wait()
                    return "gate"
                self._write("halted", n)
                return "halted"
            case Break():
                raise ZeroDivisionError("a bug")
            case Refuse():
                raise Conflict("refused")
            case Do(name=name):
                return await self._book.deeds[name](ctx)
            case _:
                return await super().receive(message, ctx)

    def control(self, message: Message) -> None:
        self._write("control")
        if self._scope is not None:
            self._scope.cancel()

    async def passivate(self) -> None:
        self._write("passivate", self.count)


class Reports(Observer):
    """Keeps what the engine reports, by name."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, tuple[Any, ...]]] = []

    def of(self, name: str) -> list[tuple[Any, ...]]:
        return [args for seen, args in self.seen if seen == name]

    def __getattribute__(self, name: str) -> Any:
        if name in vars(Observer) and not name.startswith("_"):
            return lambda *args: self.seen.append((name, args))
        return super().__getattribute__(name)


def system_of(book: Book, reports: Observer | None = None, **options: Any) -> ActorSystem:
    """A system with the kinds `one`, `two` and `three`, ranking in that order."""
    kind_options = options.pop("kind", {})
    kinds = {
        name: Kind(lambda address: Scribe(address, book), rank, **kind_options)
        for rank, name in enumerate(("one", "two", "three"), start=1)
    }
    return ActorSystem(
        clock=options.pop("clock", None) or LoopClock(),
        ids=SeededIds(),
        kinds=kinds,
        observer=reports,
        **options,
    )


async def attempt(call: Awaitable[object]) -> object:
    """What came of it: the value, or the class of the error."""
    try:
        return await call
    except MiraError as error:
        return type(error)


ONE = Address("one", "a")
TWO = Address("two", "a")
THREE = Address("three", "a")
