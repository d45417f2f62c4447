"""Many actors: what an idle one costs, and that the engine gives everything back."""

from __future__ import annotations

import gc
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint

from mira.actors.runtime.actor import Actor, Context
from mira.actors.runtime.system import ActorSystem, Kind
from mira.clock import ManualClock
from mira.ids import SeededIds
from mira.messages.base import Address, Message

from .parts import Note

pytestmark = pytest.mark.anyio

#: Bytes of an idle actor, its address and its own small instance included.
LIMIT = 1536


class Small(Actor):
    __slots__ = ("count",)

    def __init__(self, address: Address) -> None:
        self.count = 0

    async def receive(self, message: Message, ctx: Context) -> object:
        self.count += 1
        return self.count


async def idle(system: ActorSystem) -> None:
    """Wait until the ticker has had its say and nothing is running."""
    for _ in range(3):
        await checkpoint()
    while system.workers.busy:
        await checkpoint()


@pytest.fixture
def allocated() -> Iterator[None]:
    gc.collect()
    tracemalloc.start()
    yield
    tracemalloc.stop()


async def populate(system: ActorSystem, count: int) -> None:
    """Speak to so many actors once."""
    message = Note()
    for n in range(count):
        system.tell_nowait(Address("small", f"{n:036d}"), message)
        if n % 50 == 49:
            await idle(system)
    assert system.stats().kinds["small"].active == count


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": True})])
async def test_a_hundred_thousand_idle_actors_are_small_and_can_all_be_put_to_rest_at_once() -> (
    None
):
    clock = ManualClock()
    kinds = {"small": Kind(Small, 1, idle=100.0)}
    async with ActorSystem(clock=clock, ids=SeededIds(), kinds=kinds).running() as system:
        gc.collect()
        before = resident()
        await populate(system, 100_000)
        assert (resident() - before) / 100_000 <= LIMIT
        clock.advance(250)
        await idle(system)
        assert system.stats().kinds["small"].active == 0


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": True})])
async def test_an_idle_actor_is_small_and_a_passivated_one_is_nothing(allocated: None) -> None:
    clock = ManualClock()
    kinds = {"small": Kind(Small, 1, idle=100.0)}
    async with ActorSystem(clock=clock, ids=SeededIds(), kinds=kinds).running() as system:
        await populate(system, 50)
        before, _ = tracemalloc.get_traced_memory()
        await populate(system, 5000)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        assert (after - before) / 4950 <= LIMIT
        clock.advance(250)
        await idle(system)
        gc.collect()
        rest, _ = tracemalloc.get_traced_memory()
        # The table of addresses keeps its size for those to come.
        assert (rest - before) / 4950 <= 80


async def test_a_burst_of_work_leaves_no_tasks_and_no_deadlines_behind() -> None:
    clock = ManualClock()
    kinds = {"small": Kind(Small, 1)}
    async with ActorSystem(clock=clock, ids=SeededIds(), kinds=kinds).running() as system:
        async with anyio.create_task_group() as group:

            async def ask(n: int) -> None:
                await system.ask(Address("small", str(n % 500)), Note(), timeout=5 + n % 50)

            for n in range(2000):
                group.start_soon(ask, n)
        await idle(system)
        assert system.workers.busy == 0
        clock.advance(100)
        await idle(system)
        assert system.stats().kinds["small"].handled == 2000
        assert sum(system.stats().kinds["small"].ask_latency) == 2000
