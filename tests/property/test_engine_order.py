"""What the engine promises, whatever is told, asked, broken, cancelled and stopped.

Order per sender and address, one message at a time, no ask left unanswered, mailboxes bounded.
The machine drives an event loop step by step under a clock that it moves itself.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mira.actors.runtime.actor import Actor, Context
from mira.actors.runtime.supervisor import Intensity
from mira.actors.runtime.system import ActorSystem, EngineSettings, Kind
from mira.clock import ManualClock
from mira.errors import Conflict, MiraError
from mira.ids import SeededIds
from mira.messages.base import Address, Message

CAPACITY = 3
#: From here on a sender is a job.
RESULTS = 1_000_000
SENDERS = st.integers(0, 3)
KEYS = st.sampled_from("xy")
DEEDS = st.sampled_from(
    ["return", "yield", "linger", "refuse", "break", "ask down", "ask up", "job"]
)


class Deed(Message, frozen=True, kw_only=True):
    sender: int
    n: int
    deed: str


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = ManualClock()
        self.gates: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.handling: set[Address] = set()
        self.begun: list[tuple[Address, int, int]] = []
        self.wrong: list[str] = []
        self.outbound: dict[int, list[tuple[Address, Deed]]] = defaultdict(list)
        self.sending: dict[int, asyncio.Task[None]] = {}
        self.sent = 0
        self.asks: list[asyncio.Task[object]] = []
        self.stop = asyncio.Event()
        self.ended: asyncio.Task[None] = self.loop.create_task(self.live())
        self.steps(3)

    def make(self, address: Address) -> Actor:
        return Player(self, address)

    async def live(self) -> None:
        kind = {"capacity": CAPACITY, "idle": 40.0, "intensity": Intensity(failures=1)}
        self.system = ActorSystem(
            clock=self.clock,
            ids=SeededIds(),
            kinds={
                "upper": Kind(self.make, 1, **kind),  # type: ignore[arg-type]
                "lower": Kind(self.make, 2, **kind),  # type: ignore[arg-type]
            },
            settings=EngineSettings(stop_grace=5.0, jobs_default=1),
        )
        async with self.system.running():
            await self.stop.wait()

    def steps(self, count: int) -> None:
        async def turn() -> None:
            for _ in range(count):
                await asyncio.sleep(0)

        self.loop.run_until_complete(turn())

    def next(self, sender: int, deed: str) -> Deed:
        self.sent += 1
        return Deed(sender=sender, n=self.sent, deed=deed)

    # What may happen.

    @rule(sender=SENDERS, kind=st.sampled_from(["upper", "lower"]), key=KEYS, deed=DEEDS)
    def tell(self, sender: int, kind: str, key: str, deed: str) -> None:
        async def send() -> None:
            while queue:
                to, message = queue.pop(0)
                try:
                    await self.system.tell(to, message)
                except MiraError:
                    pass

        queue = self.outbound[sender]
        queue.append((Address(kind, key), self.next(sender, deed)))
        if sender not in self.sending or self.sending[sender].done():
            self.sending[sender] = self.loop.create_task(send())

    @rule(
        kind=st.sampled_from(["upper", "lower"]), key=KEYS, deed=DEEDS, timeout=st.integers(0, 30)
    )
    def ask(self, kind: str, key: str, deed: str, timeout: int) -> None:
        async def send() -> object:
            try:
                return await self.system.ask(to, message, timeout=timeout)
            except MiraError as error:
                return error

        # Asks overlap, so each is a sender of its own.
        to, message = Address(kind, key), self.next(1000 + self.sent, deed)
        self.asks.append(self.loop.create_task(send()))

    @precondition(lambda self: self.asks)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self.asks)).cancel()

    @rule(key=KEYS)
    def release(self, key: str) -> None:
        self.gates.pop(key, asyncio.Event()).set()

    @rule(count=st.integers(1, 20))
    def let_run(self, count: int) -> None:
        self.steps(count)

    @rule(seconds=st.sampled_from([0.5, 3.0, 12.0, 60.0]))
    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.steps(5)

    # What holds all the time, and at the end.

    @invariant()
    def nothing_is_wrong(self) -> None:
        assert not self.wrong
        assert not self.ended.done() or self.ended.exception() is None

    @invariant()
    def mailboxes_are_bounded(self) -> None:
        # Results of jobs stand beyond the bound.
        for cell in self.system._cells.values():
            sent = [e for e in cell._queue or () if getattr(e.message, "sender", 0) < RESULTS]
            assert len(sent) <= CAPACITY

    def teardown(self) -> None:
        self.stop.set()
        for _ in range(60):
            self.clock.advance(1.0)
            self.steps(10)
        assert self.ended.done(), "the engine does not stop"
        self.ended.result()
        assert all(ask.done() for ask in self.asks), "an ask was left unanswered"
        assert all(task.done() for task in self.sending.values()), "a tell was left waiting"
        self.nothing_is_wrong()
        last: dict[tuple[Address, int], int] = {}
        for address, sender, n in self.begun:
            assert n > last.get((address, sender), 0), "out of order, or twice"
            last[address, sender] = n
        left = asyncio.all_tasks(self.loop)
        assert not left, f"tasks are left: {left}"
        self.loop.close()


class Player(Actor):
    def __init__(self, machine: Machine, address: Address) -> None:
        self.machine = machine
        self.address = address

    async def receive(self, message: Message, ctx: Context) -> object:
        assert isinstance(message, Deed)
        machine, address = self.machine, self.address
        if address in machine.handling:
            machine.wrong.append(f"two messages at once at {address}")
        machine.handling.add(address)
        machine.begun.append((address, message.sender, message.n))
        try:
            return await self.act(message, ctx)
        finally:
            machine.handling.discard(address)

    async def act(self, message: Deed, ctx: Context) -> object:
        match message.deed:
            case "yield":
                for _ in range(5):
                    await asyncio.sleep(0)
            case "linger":
                await self.machine.gates[self.address.key].wait()
            case "refuse":
                raise Conflict
            case "break":
                raise ZeroDivisionError
            case "ask down" | "ask up":
                kind = "lower" if message.deed == "ask down" else "upper"
                deed = self.machine.next(
                    500_000 + message.n, "linger" if message.n % 3 else "return"
                )
                return await ctx.ask(Address(kind, self.address.key), deed, timeout=20)
            case "job":
                ctx.job("work", self.work, then=lambda outcome: self.result(message))
        return message.n

    async def work(self) -> object:
        for _ in range(3):
            await asyncio.sleep(0)
        return None

    def result(self, message: Deed) -> Deed:
        return self.machine.next(RESULTS + message.n, "return")


Machine.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestEngine: Any = Machine.TestCase
