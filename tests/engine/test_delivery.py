"""Tells and asks: order, one at a time, room, answers."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

import anyio
import pytest
from anyio.lowlevel import checkpoint

from mira.actors.runtime.actor import Context
from mira.actors.runtime.observer import Observer
from mira.actors.runtime.system import Kind
from mira.actors.runtime.ticker import Alarm
from mira.clock import ManualClock
from mira.errors import (
    ActorFailed,
    ActorQuarantined,
    Conflict,
    DatabaseUnavailable,
    DeadlockError,
    MailboxFull,
    NotFound,
    SystemStopped,
)
from mira.messages.base import Address

from .parts import (
    ONE,
    THREE,
    TWO,
    Book,
    Break,
    Do,
    Halt,
    Linger,
    Note,
    Refuse,
    Reports,
    attempt,
    system_of,
)

pytestmark = pytest.mark.anyio


async def test_an_actor_comes_to_life_when_it_is_first_spoken_to() -> None:
    book = Book()
    async with system_of(book).running() as system:
        assert book.entries == []
        assert await system.ask(ONE, Note(), timeout=5) == 1
        assert await system.ask(ONE, Note(), timeout=5) == 2
    assert book.of("load") == [("a", 0)]


async def test_what_one_sender_tells_arrives_in_the_order_told_through_a_mailbox_that_fills() -> (
    None
):
    book = Book()
    async with system_of(book, kind={"capacity": 4}).running() as system:
        for n in range(100):
            await system.tell(ONE, Note(n=n))
        await system.ask(ONE, Note(n=100), timeout=5)
    assert [n for _, n in book.of("note")] == list(range(101))


async def test_senders_that_wait_for_room_get_it_in_the_order_in_which_they_came() -> None:
    book = Book()
    async with system_of(book, kind={"capacity": 1}).running() as system:
        await system.tell(ONE, Linger())
        await book.begun.wait()
        await system.tell(ONE, Note(n=0))
        async with anyio.create_task_group() as group:
            for n in range(1, 20):
                group.start_soon(system.tell, ONE, Note(n=n))
                await checkpoint()
            with pytest.raises(MailboxFull):
                system.tell_nowait(ONE, Note(n=99))
            book.gate.set()
        await system.ask(ONE, Note(n=20), timeout=5)
    assert [n for _, n in book.of("note")] == list(range(21))


async def test_one_address_handles_one_message_at_a_time_and_others_meanwhile() -> None:
    book = Book()
    async with system_of(book).running() as system:
        other = Address("one", "b")
        await system.tell(ONE, Linger())
        await system.tell(ONE, Note(n=1))
        assert await system.ask(other, Note(n=2), timeout=5) == 1
        assert book.of("note") == [("b", 2)]
        book.gate.set()
        await system.ask(ONE, Note(n=3), timeout=5)
    assert book.of("note") == [("b", 2), ("a", 1), ("a", 3)]


async def test_a_sender_that_gives_up_waiting_for_room_has_not_sent() -> None:
    book = Book()
    async with system_of(book, kind={"capacity": 1}).running() as system:
        await system.tell(ONE, Linger())
        await book.begun.wait()
        await system.tell(ONE, Note(n=1))
        async with anyio.create_task_group() as group:
            group.start_soon(system.tell, ONE, Note(n=2))
            await checkpoint()
            await checkpoint()
            group.cancel_scope.cancel()
        book.gate.set()
        await system.ask(ONE, Note(n=3), timeout=5)
    assert [n for _, n in book.of("note")] == [1, 3]


async def test_an_actor_that_fills_its_own_mailbox_is_told_so_instead_of_waiting_for_itself() -> (
    None
):
    book = Book()

    async def flood(ctx: Context) -> object:
        await ctx.tell(ONE, Note(n=1))
        await ctx.tell(ONE, Note(n=2))
        return await attempt(ctx.tell(ONE, Note(n=3)))

    book.deeds["flood"] = flood
    async with system_of(book, kind={"capacity": 2}).running() as system:
        assert await system.ask(ONE, Do(name="flood"), timeout=5) is MailboxFull


async def test_an_asker_that_gives_up_takes_a_message_that_is_not_begun_back() -> None:
    book = Book()
    async with system_of(book, kind={"capacity": 2}).running() as system:
        await system.tell(ONE, Linger())
        await book.begun.wait()
        async with anyio.create_task_group() as group:
            for n in (1, 2, 3):  # two inside, one waiting for room
                group.start_soon(attempt, system.ask(ONE, Note(n=n), timeout=60))
            for _ in range(5):
                await checkpoint()
            group.cancel_scope.cancel()
        system.tell_nowait(ONE, Note(n=4))
        system.tell_nowait(ONE, Note(n=5))
        book.gate.set()
        await system.ask(ONE, Note(n=6), timeout=5)
        assert system.stats().kinds["one"].dropped == 3
    assert [n for _, n in book.of("note")] == [4, 5, 6]


async def test_an_error_meant_for_callers_answers_the_asker_and_keeps_the_state() -> None:
    book, reports = Book(), Reports()
    async with system_of(book, reports).running() as system:
        await system.ask(ONE, Note(), timeout=5)
        assert await attempt(system.ask(ONE, Refuse(), timeout=5)) is Conflict
        await system.tell(ONE, Refuse())
        assert await system.ask(ONE, Note(), timeout=5) == 2
    ((address, message, error),) = reports.of("message_rejected")
    assert (address, message, type(error)) == (ONE, Refuse(), Conflict)


async def test_a_bug_answers_the_asker_without_details_and_the_state_is_loaded_anew() -> None:
    book, reports = Book(), Reports()
    async with system_of(book, reports).running() as system:
        await system.ask(ONE, Note(), timeout=5)
        with pytest.raises(ActorFailed) as caught:
            await system.ask(ONE, Break(), timeout=5)
        assert "bug" not in caught.value.detail
        assert await system.ask(ONE, Note(), timeout=5) == 1
    assert len(book.of("load")) == 2
    assert isinstance(reports.of("actor_failed")[0][2], ZeroDivisionError)


async def test_a_load_that_fails_answers_its_message_and_the_next_one_tries_again() -> None:
    book = Book(load_errors=[DatabaseUnavailable(), ValueError()])
    async with system_of(book).running() as system:
        assert await attempt(system.ask(ONE, Note(), timeout=5)) is DatabaseUnavailable
        assert await attempt(system.ask(ONE, Note(), timeout=5)) is ActorFailed
        assert await system.ask(ONE, Note(), timeout=5) == 1


async def test_asking_up_or_level_is_refused_at_once() -> None:
    book = Book()

    async def ask_around(ctx: Context) -> object:
        level = Address("two", "b")
        return [
            await attempt(ctx.ask(ONE, Note(), timeout=5)),
            await attempt(ctx.ask(level, Note(), timeout=5)),
            await attempt(ctx.ask(TWO, Note(), timeout=5)),
            await attempt(ctx.ask(THREE, Note(), timeout=5)),
            await attempt(system.ask(ONE, Note(), timeout=5)),
        ]

    book.deeds["ask"] = ask_around
    async with system_of(book).running() as system:
        answers = await system.ask(TWO, Do(name="ask"), timeout=5)
    assert answers == [DeadlockError, DeadlockError, DeadlockError, 1, DeadlockError]


async def test_actors_that_ask_each_other_at_the_same_time_do_not_hang() -> None:
    book = Book()

    async def down(ctx: Context) -> object:
        return await attempt(ctx.ask(TWO, Do(name="up"), timeout=5))

    async def up(ctx: Context) -> object:
        return await attempt(ctx.ask(ONE, Do(name="down"), timeout=5))

    book.deeds |= {"down": down, "up": up}
    async with system_of(book).running() as system:
        answers: list[object] = []

        async def ask(to: Address, name: str) -> None:
            answers.append(await system.ask(to, Do(name=name), timeout=5))

        async with anyio.create_task_group() as group:
            group.start_soon(ask, ONE, "down")
            group.start_soon(ask, TWO, "up")
    assert answers == [DeadlockError, DeadlockError]


async def test_the_control_lane_reaches_a_handler_that_is_running() -> None:
    book = Book()
    async with system_of(book).running() as system:
        assert not system.control(ONE, Halt())
        await system.tell(ONE, Linger(n=7))
        await system.tell(ONE, Note(n=8))
        await book.begun.wait()
        assert system.control(ONE, Halt())
        await system.ask(ONE, Note(n=9), timeout=5)
    assert [what for what, _, _ in book.entries] == [
        "load", "linger", "control", "halted", "note", "note", "passivate",
    ]  # fmt: skip


async def test_stopping_lets_what_waits_be_handled_and_puts_every_actor_to_rest() -> None:
    book = Book()
    async with system_of(book).running() as system:
        await system.tell(ONE, Note(n=1))
        await system.tell(TWO, Note(n=2))
    assert sorted(n for _, n in book.of("note")) == [1, 2]
    assert len(book.of("passivate")) == 2
    with pytest.raises(SystemStopped):
        await system.ask(ONE, Note(), timeout=5)
    with pytest.raises(SystemStopped):
        system.tell_nowait(ONE, Note())


async def test_a_block_that_fails_stops_at_once_and_answers_every_waiting_ask() -> None:
    book = Book()
    answers: list[object] = []

    async def ask(message: Linger | Note) -> None:
        answers.append(await attempt(system.ask(ONE, message, timeout=3600)))

    system = system_of(book, kind={"capacity": 1})
    async with anyio.create_task_group() as group:
        with pytest.raises(KeyError):  # noqa: PT012
            async with system.running():
                group.start_soon(ask, Linger())
                await book.begun.wait()
                group.start_soon(ask, Note(n=1))
                group.start_soon(ask, Note(n=2))
                for _ in range(5):
                    await checkpoint()
                raise KeyError
    assert answers == [SystemStopped, SystemStopped, SystemStopped]


async def test_cancelling_the_block_stops_the_engine_and_passes_through() -> None:
    book = Book()
    system = system_of(book)
    with anyio.CancelScope() as scope:
        async with system.running():
            await system.ask(ONE, Note(), timeout=5)
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert len(book.of("passivate")) == 1


async def test_a_kind_that_nobody_knows_is_not_found() -> None:
    async with system_of(Book()).running() as system:
        with pytest.raises(NotFound):
            await system.tell(Address("nobody", "a"), Note())


async def test_kinds_without_a_rank_or_room_are_refused() -> None:
    with pytest.raises(ValueError):
        system_of(Book(), kind={"capacity": 0})
    assert Kind(lambda address: None, 1).capacity == 256  # type: ignore[arg-type,return-value]


async def test_the_carried_value_goes_from_sender_to_sender() -> None:
    book, request = Book(), ContextVar[str]("request", default="-")
    seen: list[str] = []

    async def pass_on(ctx: Context) -> object:
        seen.append(request.get())
        await ctx.ask(TWO, Do(name="look"), timeout=5)
        request.set("of a handler")
        await ctx.tell(THREE, Do(name="look"))
        return None

    async def look(ctx: Context) -> object:
        seen.append(request.get())
        return None

    book.deeds |= {"pass": pass_on, "look": look}
    async with system_of(book, carried=request).running() as system:
        request.set("r1")
        await system.tell(ONE, Do(name="pass"))
        request.set("r2")
        await system.ask(ONE, Do(name="look"), timeout=5)
        await system.ask(THREE, Note(), timeout=5)
    assert seen == ["r1", "r1", "r2", "of a handler"]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # trio has no such cancellations
async def test_a_cancellation_that_a_handler_lets_escape_is_its_failure_and_nobody_elses() -> None:
    book = Book()

    async def await_what_was_cancelled(ctx: Context) -> object:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        return await future

    book.deeds["stray"] = await_what_was_cancelled
    clock = ManualClock()
    async with system_of(book, clock=clock).running() as system:
        for _ in range(3):
            assert await attempt(system.ask(ONE, Do(name="stray"), timeout=5)) is ActorFailed
            assert await system.ask(ONE, Note(), timeout=5) == 1
        assert await attempt(system.ask(ONE, Do(name="stray"), timeout=5)) is ActorFailed
        assert await attempt(system.ask(ONE, Note(), timeout=5)) is ActorQuarantined
        await system.tell(ONE, Note())
        clock.advance(5.1)
        while system.cell(ONE).resting:
            await checkpoint()
        assert await system.ask(ONE, Note(), timeout=5) == 2


async def test_a_bug_of_the_engine_itself_ends_the_block_instead_of_hanging_it() -> None:
    class Wrong(Exception):
        pass

    def fail() -> None:
        raise Wrong

    system = system_of(Book())
    with pytest.raises(Wrong):  # noqa: PT012
        async with system.running():
            system.ticker.after(0.0, Alarm(fail))
            await anyio.sleep_forever()


async def test_an_engine_runs_once() -> None:
    system = system_of(Book())
    with pytest.raises(SystemStopped):
        await system.tell(ONE, Note())
    async with system.running():
        pass
    with pytest.raises(RuntimeError):
        async with system.running():
            pass


async def test_an_observer_that_fails_does_not_disturb_the_engine() -> None:
    class Deaf(Observer):
        def actor_failed(self, *args: object) -> None:
            raise OSError

    book = Book()
    async with system_of(book, Deaf()).running() as system:
        assert await attempt(system.ask(ONE, Break(), timeout=5)) is ActorFailed
        assert await system.ask(ONE, Note(), timeout=5) == 1


async def test_counts_tell_what_happened() -> None:
    book = Book()
    async with system_of(book).running() as system:
        for n in range(10):
            await system.tell(ONE, Note(n=n))
        await system.ask(ONE, Note(), timeout=5)
        await attempt(system.ask(TWO, Break(), timeout=5))
        stats = system.stats()
    assert (stats.kinds["one"].handled, stats.kinds["one"].active) == (11, 1)
    assert stats.kinds["one"].queue_high == 11
    assert sum(stats.kinds["one"].ask_latency) == 1
    assert stats.kinds["two"].failed == 1
    assert stats.kinds["three"].latency(0.5) is None
