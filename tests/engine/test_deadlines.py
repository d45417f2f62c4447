"""Time: deadlines, rest, idleness, stop. On trio, whose mock clock makes hours pass at once."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from trio.testing import MockClock

from mira.actors.runtime.actor import Actor, Context
from mira.actors.runtime.supervisor import Intensity
from mira.actors.runtime.system import ActorSystem, EngineSettings, Kind
from mira.actors.runtime.testing import LoopClock
from mira.clock import ManualClock
from mira.errors import ActorFailed, ActorQuarantined, DeadlineExceeded, MailboxFull, SystemStopped
from mira.ids import SeededIds
from mira.messages.base import Address, Message

from .parts import ONE, TWO, Book, Break, Do, Linger, Note, Reports, attempt, system_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


async def test_an_ask_is_given_up_at_its_deadline_and_its_handler_cancelled() -> None:
    book = Book()
    async with system_of(book).running() as system:
        await system.ask(ONE, Note(), timeout=1)
        begun = anyio.current_time()
        assert await attempt(system.ask(ONE, Linger(), timeout=3600)) is DeadlineExceeded
        assert 3600 <= anyio.current_time() - begun <= 3636
        # The instance that was cut off in the middle is not used again.
        assert await system.ask(ONE, Note(), timeout=1) == 1
    assert len(book.of("load")) == 2


@pytest.mark.parametrize("timeout", [0.0, 0.003, 0.01, 0.5, 9.99, 11.0, 250.0])
async def test_a_deadline_is_never_early_and_late_by_a_hundredth_at_most(timeout: float) -> None:
    async with system_of(Book()).running() as system:
        begun = anyio.current_time()
        assert await attempt(system.ask(ONE, Linger(), timeout=timeout)) is DeadlineExceeded
        late = anyio.current_time() - begun - timeout
    assert -1e-6 <= late <= max(0.011, timeout / 90)


async def test_a_shorter_deadline_set_later_is_kept() -> None:
    async with system_of(Book()).running() as system:
        times: dict[float, float] = {}

        async def ask(timeout: float) -> None:
            await attempt(system.ask(Address("one", str(timeout)), Linger(), timeout=timeout))
            times[timeout] = anyio.current_time() - begun

        begun = anyio.current_time()
        async with anyio.create_task_group() as group:
            for timeout in (8.0, 4.0, 2.0, 1.0):
                group.start_soon(ask, timeout)
                await anyio.sleep(0.001)
    assert all(limit <= took <= limit + 0.02 for limit, took in times.items())


async def test_asks_that_wait_behind_a_slow_one_keep_their_own_deadlines() -> None:
    book = Book()
    async with system_of(book, kind={"capacity": 2}).running() as system:
        await system.tell(ONE, Linger())
        await book.begun.wait()
        answers = []

        async def ask(n: int) -> None:
            answers.append((n, await attempt(system.ask(ONE, Note(n=n), timeout=n))))

        async with anyio.create_task_group() as group:
            for n in (4, 3, 2, 1):  # two of them find no room
                group.start_soon(ask, n)
        assert answers == [(n, DeadlineExceeded) for n in (1, 2, 3, 4)]
        book.gate.set()
        await system.ask(ONE, Note(n=9), timeout=1)
    assert book.of("note") == [("a", 9)]


async def test_clean_up_that_is_shielded_is_not_broken_by_a_deadline() -> None:
    book = Book()
    done = []

    async def careful(ctx: Context) -> object:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(3)
                done.append(anyio.current_time())
        return None

    book.deeds["careful"] = careful
    async with system_of(book).running() as system:
        begun = anyio.current_time()
        assert await attempt(system.ask(ONE, Do(name="careful"), timeout=1)) is DeadlineExceeded
        assert anyio.current_time() - begun < 1.1
        assert await system.ask(ONE, Note(), timeout=10) == 1
    assert 4 <= done[0] - begun < 4.1


@pytest.mark.parametrize("anyio_backend", ["asyncio", ("asyncio", {"use_uvloop": True})])
async def test_shielded_clean_up_holds_on_asyncio_too() -> None:
    book, clock = Book(), ManualClock()
    finish, done = anyio.Event(), []

    async def careful(ctx: Context) -> object:
        try:
            book.begun.set()
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await finish.wait()
                done.append(True)
        return None

    book.deeds["careful"] = careful
    async with system_of(book, clock=clock).running() as system:
        async with anyio.create_task_group() as group:

            async def ask() -> None:
                assert await attempt(system.ask(ONE, Do(name="careful"), timeout=1)) is (
                    DeadlineExceeded
                )
                finish.set()

            group.start_soon(ask)
            await book.begun.wait()
            clock.advance(1.02)
        assert await system.ask(ONE, Note(), timeout=1) == 1
    assert done == [True]


async def test_a_tell_gives_up_when_there_is_no_room_in_time() -> None:
    book = Book()
    settings = EngineSettings(tell_timeout=7.0)
    async with system_of(book, settings=settings, kind={"capacity": 1}).running() as system:
        await system.tell(ONE, Linger())
        await book.begun.wait()
        await system.tell(ONE, Note(n=1))
        begun = anyio.current_time()
        assert await attempt(system.tell(ONE, Note(n=2))) is MailboxFull
        assert 7 <= anyio.current_time() - begun < 7.1
        book.gate.set()
        await system.ask(ONE, Note(n=3), timeout=1)
    assert [n for _, n in book.of("note")] == [1, 3]


async def test_two_actors_that_fill_each_others_mailboxes_get_out_of_it() -> None:
    book = Book()
    other = Address("one", "b")
    answers: list[object] = []

    async def flood(ctx: Context) -> object:
        target = other if ctx.address == ONE else ONE
        answers.extend([await attempt(ctx.tell(target, Note(n=n))) for n in range(3)])
        return None

    book.deeds["flood"] = flood
    async with system_of(book, kind={"capacity": 1}).running() as system:
        await system.tell(ONE, Do(name="flood"))
        await system.tell(other, Do(name="flood"))
        await anyio.sleep(60)
        assert MailboxFull in answers
        assert len(book.of("note")) == answers.count(None)


async def test_an_idle_actor_is_put_to_rest_and_comes_back_when_spoken_to() -> None:
    book = Book()
    async with system_of(book, kind={"idle": 100.0}).running() as system:
        for _ in range(5):
            await system.ask(ONE, Note(), timeout=1)
            await anyio.sleep(60)
        assert book.of("passivate") == []
        await anyio.sleep(60)
        assert book.of("passivate") == [("a", 5)]
        assert system.stats().kinds["one"].active == 0
        assert await system.ask(ONE, Note(), timeout=1) == 1


async def test_an_actor_at_work_is_not_idle() -> None:
    book = Book()
    async with system_of(book, kind={"idle": 10.0}).running() as system:
        await system.tell(ONE, Linger())
        await anyio.sleep(1000)
        assert book.of("passivate") == []
        book.gate.set()
        await anyio.sleep(30)
        assert book.of("passivate") == [("a", 0)]


async def test_a_message_that_comes_while_an_actor_is_put_to_rest_gets_a_new_instance() -> None:
    events: list[str] = []

    class Slow(Actor):
        async def load(self, ctx: Context) -> None:
            events.append("load")

        async def receive(self, message: Message, ctx: Context) -> object:
            events.append("receive")
            return None

        async def passivate(self) -> None:
            events.append("passivate")
            await anyio.sleep(3)
            events.append("passivated")

    kinds = {"one": Kind(lambda address: Slow(), 1, idle=10.0)}
    async with ActorSystem(clock=LoopClock(), ids=SeededIds(), kinds=kinds).running() as system:
        await system.ask(ONE, Note(), timeout=1)
        await anyio.sleep(11.5)
        assert events[-1] == "passivate"
        await system.ask(ONE, Note(), timeout=5)
    once = ["load", "receive", "passivate", "passivated"]
    assert events == once + once


async def test_an_address_that_fails_too_often_rests_and_rests_longer_each_time() -> None:
    book, reports = Book(), Reports()
    kind = {"intensity": Intensity(failures=3, seconds=60.0, rest=5.0, longest=8.0)}
    async with system_of(book, reports, kind=kind).running() as system:
        for _ in range(4):
            assert await attempt(system.ask(ONE, Break(), timeout=1)) is ActorFailed
        with pytest.raises(ActorQuarantined) as caught:
            await system.ask(ONE, Note(), timeout=1)
        assert 4.9 < caught.value.retry_after <= 5
        assert await system.ask(Address("one", "b"), Note(), timeout=1) == 1
        await system.tell(ONE, Note(n=7))  # what is told waits
        await anyio.sleep(5.1)
        assert await system.ask(ONE, Note(), timeout=1) == 2
        for _ in range(4):
            await attempt(system.ask(ONE, Break(), timeout=1))
        await anyio.sleep(70)
        for _ in range(4):
            await attempt(system.ask(ONE, Break(), timeout=1))
    assert [seconds for _, seconds in reports.of("quarantined")] == [5.0, 8.0, 5.0]


async def test_what_was_told_before_an_address_rests_waits_until_it_has_rested() -> None:
    book = Book()
    async with system_of(book).running() as system:
        for _ in range(4):
            await system.tell(ONE, Break())
        await system.tell(ONE, Note(n=1))
        await anyio.sleep(4.9)
        assert book.of("note") == []
        await anyio.sleep(0.2)
        assert book.of("note") == [("a", 1)]


async def test_failures_that_are_far_apart_do_not_add_up() -> None:
    book, reports = Book(), Reports()
    async with system_of(book, reports).running() as system:
        for _ in range(10):
            assert await attempt(system.ask(ONE, Break(), timeout=1)) is ActorFailed
            await anyio.sleep(21)
    assert reports.of("quarantined") == []


async def test_asks_that_wait_when_an_address_is_quarantined_are_answered_at_once() -> None:
    book = Book()
    answers = []

    async def fail_when_open(ctx: Context) -> object:
        await book.gate.wait()
        raise ZeroDivisionError

    async def ask(n: int) -> None:
        answers.append((n, await attempt(system.ask(ONE, Note(n=n), timeout=60))))

    book.deeds["fail"] = fail_when_open
    async with system_of(book).running() as system:
        for _ in range(3):
            await attempt(system.ask(ONE, Break(), timeout=1))
        await system.tell(ONE, Do(name="fail"))
        async with anyio.create_task_group() as group:
            group.start_soon(ask, 1)
            group.start_soon(ask, 2)
            await anyio.sleep(1)
            begun = anyio.current_time()
            book.gate.set()
        assert anyio.current_time() - begun < 0.1
    assert sorted(n for n, _ in answers) == [1, 2]
    assert {answer for _, answer in answers} == {ActorQuarantined}


async def test_stopping_waits_for_what_runs_as_long_as_the_grace_allows() -> None:
    book, reports = Book(), Reports()
    answers = []

    async def ask() -> None:
        answers.append(await attempt(system.ask(ONE, Linger(), timeout=3600)))

    async def longer(ctx: Context) -> object:
        await anyio.sleep(15)
        return "in time"

    book.deeds["longer"] = longer
    system = system_of(book, reports, settings=EngineSettings(stop_grace=20.0))
    async with anyio.create_task_group() as group:
        async with system.running():
            group.start_soon(ask)
            await system.tell(TWO, Do(name="longer"))
            await system.tell(TWO, Note(n=5))
            await book.begun.wait()
            begun = anyio.current_time()
        assert 20 <= anyio.current_time() - begun < 20.5
    assert answers == [SystemStopped]
    assert ("a", 5) in book.of("note")
    assert reports.of("stop_overran") == [(1,)]


async def test_a_handler_that_stops_in_time_ends_the_wait() -> None:
    book = Book()

    async def longer(ctx: Context) -> object:
        await anyio.sleep(15)
        return await attempt(ctx.ask(TWO, Note(), timeout=1))

    book.deeds["longer"] = longer
    async with system_of(book).running() as system:
        await system.tell(ONE, Do(name="longer"))
        begun = anyio.current_time()
    assert 15 <= anyio.current_time() - begun < 15.1
    assert book.of("note") == [("a", 0)]


async def test_a_passivation_that_hangs_does_not_hold_up_the_stop() -> None:
    class Hanging(Actor):
        async def receive(self, message: Message, ctx: Context) -> object:
            return "here"

        async def passivate(self) -> None:
            await anyio.sleep_forever()

    system = ActorSystem(
        clock=LoopClock(),
        ids=SeededIds(),
        kinds={"one": Kind(lambda address: Hanging(), 1)},
        settings=EngineSettings(passivate_timeout=2.0),
    )
    async with system.running():
        for n in range(200):
            assert await system.ask(Address("one", str(n)), Note(), timeout=1) == "here"
        begun = anyio.current_time()
    assert anyio.current_time() - begun < 7


async def test_an_idle_engine_does_not_wake_up() -> None:
    async with system_of(Book()).running() as system:
        for n in range(50):
            await system.ask(Address("one", str(n)), Note(), timeout=30)
        sleeps = 0
        clock_sleep = system.clock.sleep

        async def counted(seconds: float) -> None:
            nonlocal sleeps
            sleeps += 1
            await clock_sleep(seconds)

        system.clock.sleep = counted  # type: ignore[method-assign]
        await anyio.sleep(1700)
    assert sleeps <= 3
