"""The pool of threads: who goes first, who waits, and what a cancelled caller leaves behind."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import anyio
import pytest

from mira.errors import SystemStopped
from mira.memory.pool import NICE, CpuPool

pytestmark = pytest.mark.anyio


class Gate:
    """Work that waits inside its thread until it is let go; knows the order of beginnings."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self._open = threading.Event()

    def work(self, name: str) -> Callable[[], str]:
        def run() -> str:
            self.begun.append(name)
            assert self._open.wait(20)
            return name

        return run

    def open(self) -> None:
        self._open.set()


@pytest.fixture
def gate() -> Gate:
    return Gate()


async def _until(seen: Callable[[], bool]) -> None:
    """Let others run until something has happened that another thread brings about."""
    with anyio.fail_after(10):
        while not seen():
            await anyio.lowlevel.checkpoint()


async def test_live_work_begins_though_background_work_takes_all_it_may(
    pool: CpuPool, gate: Gate
) -> None:
    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(pool.run, gate.work(f"background {number}"))
        await _until(lambda: bool(gate.begun))
        assert await pool.run(lambda: "at once", live=True) == "at once"
        assert gate.begun == ["background 0"]
        gate.open()


async def test_with_one_thread_live_work_is_the_next_to_begin(gate: Gate) -> None:
    pool = CpuPool(1)
    async with anyio.create_task_group() as group:
        for name in ("first", "second", "third"):
            group.start_soon(pool.run, gate.work(name))
        await _until(lambda: bool(gate.begun))

        async def live() -> None:
            await pool.run(gate.work("live"), live=True)

        group.start_soon(live)
        await anyio.lowlevel.checkpoint()
        gate.open()
    assert gate.begun == ["first", "live", "second", "third"]
    await pool.aclose()


async def test_who_brings_too_much_waits_for_room_in_order(gate: Gate) -> None:
    pool = CpuPool(1, room=2)
    done: list[int] = []

    async def bring(number: int) -> None:
        await pool.run(gate.work(str(number)))
        done.append(number)

    async with anyio.create_task_group() as group:
        for number in range(6):
            group.start_soon(bring, number)
        await _until(lambda: bool(gate.begun))
        assert len(pool._background) == 1, "one runs and one waits; the others stand outside"
        gate.open()
    assert done == list(range(6))
    await pool.aclose()


async def test_a_cancelled_caller_takes_back_work_that_has_not_begun(gate: Gate) -> None:
    pool = CpuPool(1, room=2)
    async with anyio.create_task_group() as group:
        group.start_soon(pool.run, gate.work("runs"))
        await _until(lambda: bool(gate.begun))
        with anyio.CancelScope() as left:
            async with anyio.create_task_group() as inner:
                inner.start_soon(pool.run, gate.work("taken back"))
                await anyio.wait_all_tasks_blocked()
                left.cancel()
        group.start_soon(pool.run, gate.work("has its room"))
        await anyio.wait_all_tasks_blocked()
        gate.open()
    assert gate.begun == ["runs", "has its room"]
    await pool.aclose()


async def test_work_whose_caller_left_goes_to_its_end_and_frees_its_thread(gate: Gate) -> None:
    pool = CpuPool(1)
    with anyio.CancelScope() as left:
        async with anyio.create_task_group() as group:
            group.start_soon(pool.run, gate.work("left alone"))
            await _until(lambda: bool(gate.begun))
            left.cancel()
    gate.open()
    assert await pool.run(lambda: "next") == "next"
    await pool.aclose()


async def test_the_threads_stand_back_behind_the_event_loop(pool: CpuPool) -> None:
    def niceness() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    before = niceness()
    assert await pool.run(niceness) == min(19, before + NICE)
    assert niceness() == before, "the loop's own thread stays where it was"


async def test_a_failure_reaches_its_caller_and_nobody_else(pool: CpuPool) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await pool.run(broken)
    assert await pool.run(lambda: 1) == 1


async def test_closing_answers_what_waits_and_lets_what_runs_end(gate: Gate) -> None:
    pool = CpuPool(1)
    ended: list[str] = []

    async def caller(name: str) -> None:
        try:
            ended.append(await pool.run(gate.work(name)))
        except SystemStopped:
            ended.append(f"{name} stopped")

    async with anyio.create_task_group() as group:
        group.start_soon(caller, "runs")
        await _until(lambda: bool(gate.begun))
        group.start_soon(caller, "waits")
        await anyio.wait_all_tasks_blocked()
        group.start_soon(pool.aclose)
        await _until(lambda: "waits stopped" in ended)
        gate.open()
    assert ended == ["waits stopped", "runs"]
    with pytest.raises(SystemStopped):
        await pool.run(lambda: 1)
    await pool.aclose()
    assert not [t for t in threading.enumerate() if t.name.startswith("mira-cpu") and t.is_alive()]
