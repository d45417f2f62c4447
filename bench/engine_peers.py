"""The same echo actor four times: on MIRA's engine, on Pykka, on asyncio.Queue, and bare.

Each is told and asked the same message and adds one to a count. MIRA runs with everything on:
bounded mailbox, deadlines, supervision, rank and chain checks, the carried value, statistics.
Pykka's mailboxes are not bounded, its actors are threads. "bare" is a task with a deque and a
future: no bound, no deadline, no failure, the floor of what asyncio can do.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import AsyncExitStack
from contextvars import ContextVar
from time import perf_counter
from typing import Any, Protocol

import pykka

from mira.actors.runtime.actor import Actor, Context
from mira.actors.runtime.system import ActorSystem, Kind
from mira.clock import SystemClock
from mira.ids import SystemIds
from mira.messages.base import Address, Message

CAPACITY = 256


class Add(Message, frozen=True, kw_only=True):
    n: int


MESSAGE = Add(n=1)


class Peer(Protocol):
    """One way to have actors. Used in this order: open, then the others, then close."""

    async def open(self) -> None: ...

    async def tells(self, count: int) -> float:
        """Seconds to tell so many messages and have them handled."""
        ...

    async def asks(self, count: int) -> list[float]:
        """The seconds that each of so many asks takes, one after another."""
        ...

    async def populate(self, count: int) -> None:
        """Make so many actors that have each answered once and are idle now."""
        ...

    async def close(self) -> None: ...


class MiraPeer:
    class Echo(Actor):
        __slots__ = ("count",)

        def __init__(self, address: Address) -> None:
            self.count = 0

        async def receive(self, message: Message, ctx: Context) -> object:
            self.count += 1
            return self.count

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._system = ActorSystem(
            clock=SystemClock(),
            ids=SystemIds(),
            kinds={"echo": Kind(self.Echo, 1, capacity=CAPACITY)},
            carried=ContextVar("request", default=None),
        )
        self._address = Address("echo", "one")

    async def open(self) -> None:
        await self._stack.enter_async_context(self._system.running())

    async def tells(self, count: int) -> float:
        system, address = self._system, self._address
        begun = perf_counter()
        for _ in range(count):
            await system.tell(address, MESSAGE)
        await system.ask(address, MESSAGE, timeout=60.0)
        return perf_counter() - begun

    async def asks(self, count: int) -> list[float]:
        system, address = self._system, self._address
        times = []
        for _ in range(count):
            begun = perf_counter()
            await system.ask(address, MESSAGE, timeout=60.0)
            times.append(perf_counter() - begun)
        return times

    async def populate(self, count: int) -> None:
        for n in range(count):
            key = f"00000000-0000-7000-8000-{n:012d}"
            await self._system.ask(Address("echo", key), MESSAGE, timeout=60.0)

    async def close(self) -> None:
        await self._stack.aclose()


class PykkaPeer:
    class Echo(pykka.ThreadingActor):
        def __init__(self) -> None:
            super().__init__()
            self.count = 0

        def on_receive(self, message: Any) -> int:
            self.count += 1
            return self.count

    async def open(self) -> None:
        self._actor = self.Echo.start()

    async def tells(self, count: int) -> float:
        actor = self._actor
        begun = perf_counter()
        for _ in range(count):
            actor.tell(MESSAGE)
        actor.ask(MESSAGE)
        return perf_counter() - begun

    async def asks(self, count: int) -> list[float]:
        actor = self._actor
        times = []
        for _ in range(count):
            begun = perf_counter()
            actor.ask(MESSAGE)
            times.append(perf_counter() - begun)
        return times

    async def populate(self, count: int) -> None:
        for _ in range(count):
            self.Echo.start().ask(MESSAGE)

    async def close(self) -> None:
        pykka.ActorRegistry.stop_all()


class QueueActor:
    """A task that takes from an asyncio.Queue."""

    def __init__(self) -> None:
        self.count = 0
        self._queue: asyncio.Queue[tuple[Add, asyncio.Future[int] | None]] = asyncio.Queue(CAPACITY)
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            _, reply = await self._queue.get()
            self.count += 1
            if reply is not None:
                reply.set_result(self.count)

    async def tell(self, message: Add) -> None:
        await self._queue.put((message, None))

    async def ask(self, message: Add) -> int:
        reply: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        await self._queue.put((message, reply))
        return await reply

    def stop(self) -> None:
        self._task.cancel()


class BareActor:
    """A task that waits on a future and empties a deque."""

    def __init__(self) -> None:
        self.count = 0
        self._box: deque[tuple[Add, asyncio.Future[int] | None]] = deque()
        self._loop = asyncio.get_running_loop()
        self._news: asyncio.Future[None] = self._loop.create_future()
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            while self._box:
                _, reply = self._box.popleft()
                self.count += 1
                if reply is not None:
                    reply.set_result(self.count)
            self._news = self._loop.create_future()
            await self._news

    def _put(self, message: Add, reply: asyncio.Future[int] | None) -> None:
        self._box.append((message, reply))
        if not self._news.done():
            self._news.set_result(None)

    async def tell(self, message: Add) -> None:
        self._put(message, None)

    async def ask(self, message: Add) -> int:
        reply: asyncio.Future[int] = self._loop.create_future()
        self._put(message, reply)
        return await reply

    def stop(self) -> None:
        self._task.cancel()


class TaskPeer:
    """Actors that are tasks of the benchmark's own making."""

    def __init__(self, make: Callable[[], QueueActor | BareActor]) -> None:
        self._make = make
        self._actors: list[QueueActor | BareActor] = []

    async def open(self) -> None:
        self._actors.append(self._make())

    async def tells(self, count: int) -> float:
        actor = self._actors[0]
        begun = perf_counter()
        for _ in range(count):
            await actor.tell(MESSAGE)
        await actor.ask(MESSAGE)
        return perf_counter() - begun

    async def asks(self, count: int) -> list[float]:
        actor = self._actors[0]
        times = []
        for _ in range(count):
            begun = perf_counter()
            await actor.ask(MESSAGE)
            times.append(perf_counter() - begun)
        return times

    async def populate(self, count: int) -> None:
        for _ in range(count):
            actor = self._make()
            await actor.ask(MESSAGE)
            self._actors.append(actor)

    async def close(self) -> None:
        for actor in self._actors:
            actor.stop()


PEERS: dict[str, Callable[[], Peer]] = {
    "mira": MiraPeer,
    "pykka": PykkaPeer,
    "asyncio_queue": lambda: TaskPeer(QueueActor),
    "bare": lambda: TaskPeer(BareActor),
}
