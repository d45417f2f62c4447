"""Durable messages: exactly one effect, whatever stops where; lanes, keys, back-off, timers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import anyio
import pytest
from trio.testing import MockClock

from mira.actors.runtime.actor import Context
from mira.actors.runtime.durable import DurableMessage, DurableRow
from mira.actors.runtime.supervisor import Intensity
from mira.actors.runtime.system import ActorSystem, EngineSettings
from mira.actors.runtime.testing import LoopClock, MemoryOutbox
from mira.errors import Conflict, NotFound, ProviderOutage
from mira.messages.base import Address

from .parts import ONE, Book, Do, Linger, Note, Reports, system_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


class Bench:
    """An outbox that outlives the systems that use it, as a database would."""

    def __init__(self) -> None:
        self.clock = LoopClock()
        self.outbox = MemoryOutbox(self.clock)
        self.book = Book()
        self.reports = Reports()
        #: What handlers have done, in the database.
        self.effects: list[object] = []

    def system(self, **options: Any) -> ActorSystem:
        return system_of(self.book, self.reports, clock=self.clock, outbox=self.outbox, **options)

    async def tell(
        self, system: ActorSystem, *messages: Any, to: Address = ONE, **how: Any
    ) -> None:
        how.setdefault("lane", "main")
        async with self.outbox.transaction() as tx:
            for message in messages:
                await system.tell_durable(tx, to, message, **how)

    async def idle(self, seconds: float = 40.0) -> None:
        await anyio.sleep(seconds)

    def effect(self, value: object = None) -> Callable[[Context], Any]:
        """A deed whose effect and done mark are one transaction."""

        async def deed(ctx: Context) -> object:
            assert ctx.durable is not None
            async with self.outbox.transaction() as tx:
                if await ctx.done(tx):
                    tx.on_commit(
                        lambda: self.effects.append(value or (ctx.durable and ctx.durable.id))
                    )
            return None

        return deed


@pytest.fixture
async def bench() -> Bench:
    return Bench()


async def test_a_message_is_delivered_right_after_its_commit_without_asking_the_store(
    bench: Bench,
) -> None:
    async with bench.system().running() as system:
        await bench.idle(1)
        asked = bench.outbox.calls.get("due", 0)
        async with bench.outbox.transaction() as tx:
            await system.tell_durable(tx, ONE, Note(n=1), lane="main")
            await bench.idle(100)
            asked_meanwhile = bench.outbox.calls["due"]
            assert bench.book.of("note") == []
        await anyio.sleep(0)
        await anyio.sleep(0.1)
        assert bench.book.of("note") == [("a", 1)]
        assert bench.outbox.calls["due"] == asked_meanwhile > asked
        assert bench.outbox.rows == {}


async def test_what_is_rolled_back_was_never_told(bench: Bench) -> None:
    async with bench.system().running() as system:
        with pytest.raises(KeyError):  # noqa: PT012
            async with bench.outbox.transaction() as tx:
                await system.tell_durable(tx, ONE, Note(n=1), lane="main")
                raise KeyError
        await bench.idle()
    assert bench.book.of("note") == []


async def test_what_an_earlier_process_left_is_delivered_at_start(bench: Bench) -> None:
    stopped = bench.system()
    async with stopped.running():
        pass
    async with bench.outbox.transaction() as tx:
        await bench.outbox.write(
            tx, [DurableMessage(to=ONE, message=Note(n=n), lane=f"lane {n}") for n in range(600)]
        )
    async with bench.system().running() as system:
        await bench.idle(1)
        assert sorted(n for _, n in bench.book.of("note")) == list(range(600))
        assert system.stats().durable.done == 600


async def test_order_holds_in_a_lane_and_one_is_in_flight_at_a_time(bench: Bench) -> None:
    async with bench.system().running() as system:
        for n in range(50):
            await bench.tell(system, Note(n=n))
        await bench.tell(system, *(Note(n=n) for n in range(50, 100)))
        await bench.idle()
        assert system.stats().durable.delivered == 100
    assert [n for _, n in bench.book.of("note")] == list(range(100))


async def test_what_is_written_while_its_lane_is_busy_follows_at_once(bench: Bench) -> None:
    async with bench.system().running() as system:
        await bench.tell(system, Linger())
        await bench.book.begun.wait()
        await bench.tell(system, Note(n=1))
        await bench.tell(system, Note(n=2))
        bench.book.gate.set()
        await bench.idle(0.5)
        assert bench.book.of("note") == [("a", 1), ("a", 2)]


async def test_a_lane_that_is_blocked_blocks_no_other(bench: Bench) -> None:
    async def outage(ctx: Context) -> object:
        raise ProviderOutage

    bench.book.deeds["outage"] = outage
    async with bench.system().running() as system:
        await bench.tell(system, Do(name="outage"), Note(n=1), lane="summaries")
        await bench.tell(system, Note(n=2), at=bench.clock.now() + timedelta(days=1), lane="timers")
        await bench.tell(system, Note(n=3), lane="turns")
        await bench.tell(system, Note(n=4), to=Address("two", "b"), lane="summaries")
        await bench.idle(1)
    assert sorted(bench.book.of("note")) == [("a", 3), ("b", 4)]


async def test_a_busy_lane_blocks_no_other_of_its_address(bench: Bench) -> None:
    async with bench.system(settings=EngineSettings(stop_grace=0)).running() as system:
        await bench.tell(system, Linger(), to=Address("two", "x"), lane="slow")
        await bench.tell(system, Note(n=1), to=Address("two", "x"), lane="slow")
        await bench.tell(system, Note(n=2), lane="slow")
        await bench.idle(1)
    assert bench.book.of("note") == [("a", 2)]


async def live_until(bench: Bench, died: anyio.Event, told: list[str]) -> None:
    """One process: it tells three messages and lives on until it dies, in the middle or not."""

    async def watch() -> None:
        with anyio.move_on_after(100):
            await died.wait()
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        async with bench.system(settings=EngineSettings(stop_grace=0)).running() as system:
            for n in range(3):
                await bench.tell(system, Do(name="effect"), lane=f"lane {n % 2}")
                told.append(f"message {n}")
                await anyio.sleep(0.5)
            await anyio.sleep_forever()


@pytest.mark.parametrize("step", ["write", "commit", "due", "done"])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_process_that_dies_anywhere_leaves_exactly_one_effect(
    bench: Bench, step: str, when: str
) -> None:
    """It dies at the first exchange of a kind with the store, then at the second, and so on."""
    bench.book.deeds["effect"] = bench.effect()
    deaths = 0
    for count in itertools.count(1):
        bench.effects.clear()
        bench.outbox.calls.clear()
        died, told = anyio.Event(), list[str]()

        async def die(name: str, count: int = count, died: anyio.Event = died) -> None:
            if name == step and bench.outbox.calls[name] == count:
                died.set()
                if when == "before":
                    await anyio.sleep_forever()

        bench.outbox.pause = die
        await live_until(bench, died, told)
        bench.outbox.pause = None
        async with bench.system().running():
            await bench.idle(90)
        assert (bench.outbox.rows, bench.outbox.dead) == ({}, [])
        assert len(set(bench.effects)) == len(bench.effects), "an effect happened twice"
        assert len(told) <= len(bench.effects) <= len(told) + 1
        if not died.is_set():
            assert len(told) == len(bench.effects) == 3
            break
        deaths += 1
    assert deaths >= 3


async def test_a_handler_that_fails_after_its_effect_is_not_run_again(bench: Bench) -> None:
    mark = bench.effect("once")

    async def deed(ctx: Context) -> object:
        await mark(ctx)
        raise ZeroDivisionError

    bench.book.deeds["deed"] = deed
    async with bench.system().running() as system:
        await bench.tell(system, Do(name="deed"), Note(n=1))
        await bench.idle()
    assert bench.effects == ["once"]
    assert bench.book.of("note") == [("a", 1)]


async def test_a_handler_whose_transaction_rolls_back_is_run_again(bench: Bench) -> None:
    tries = []

    async def deed(ctx: Context) -> object:
        tries.append(bench.clock.monotonic())
        async with bench.outbox.transaction() as tx:
            await ctx.done(tx)
            tx.on_commit(lambda: bench.effects.append("once"))
            if len(tries) < 3:
                raise Conflict
        return None

    bench.book.deeds["deed"] = deed
    async with bench.system().running() as system:
        await bench.tell(system, Do(name="deed"))
        await bench.idle()
    assert bench.effects == ["once"]
    first, second, third = tries
    assert 0.75 <= second - first <= 1.1 < 1.4 <= third - second <= 2.1


async def test_the_same_key_replaces_a_message_that_is_not_done(bench: Bench) -> None:
    def later(seconds: float) -> Any:
        return bench.clock.now() + timedelta(seconds=seconds)

    async with bench.system().running() as system:
        await bench.tell(system, Note(n=1), at=later(5), lane="timer", key="t")
        await bench.tell(system, Note(n=2), at=later(10), lane="timer", key="t")
        await bench.tell(system, Note(n=3), at=later(2), lane="timer", key="t")
        begun = bench.clock.monotonic()
        while not bench.book.of("note"):
            await anyio.sleep(0.01)
        assert 2 <= bench.clock.monotonic() - begun < 2.1
        await bench.tell(system, Note(n=4), at=later(2), lane="timer", key="t")
        await bench.idle()
    assert bench.book.of("note") == [("a", 3), ("a", 4)]


async def test_a_message_replaced_while_it_is_handled_is_delivered_in_its_new_form(
    bench: Bench,
) -> None:
    async with bench.system().running() as system:
        await bench.tell(system, Linger(), lane="turns", key="t")
        await bench.book.begun.wait()
        await bench.tell(system, Note(n=1), lane="turns", key="t")
        await bench.tell(system, Note(n=2), lane="turns", key="t")
        bench.book.gate.set()
        await bench.idle(1)
    assert bench.book.of("note") == [("a", 2)]
    assert bench.outbox.rows == {}


async def test_a_message_can_ask_to_be_delivered_again_behind_what_waits(bench: Bench) -> None:
    seen: list[int] = []

    async def deed(ctx: Context) -> object:
        assert ctx.durable is not None
        seen.append(ctx.durable.attempts)
        if len(seen) == 1:
            await system.tell(ONE, Note(n=1))
        if len(seen) < 3:
            ctx.again()
        return None

    bench.book.deeds["deed"] = deed
    async with bench.system().running() as system:
        await bench.tell(system, Do(name="deed"), Note(n=2))
        await bench.idle(1)
        assert system.stats().durable.delivered == 2
    assert seen == [0, 0, 0]
    assert bench.book.of("note") == [("a", 1), ("a", 2)]


async def test_failures_are_tried_again_ever_later_and_end_among_the_dead_letters(
    bench: Bench,
) -> None:
    tries: list[float] = []

    async def deed(ctx: Context) -> object:
        tries.append(bench.clock.monotonic())
        raise Conflict("never")

    bench.book.deeds["deed"] = deed
    async with bench.system().running() as system:
        await bench.tell(system, Do(name="deed"), Note(n=1))
        await bench.idle(2000)
    assert len(tries) == 8
    pauses = [later - earlier for earlier, later in itertools.pairwise(tries)]
    assert all(0.75 * 2**n <= pause <= 1.02 * 2**n + 0.02 for n, pause in enumerate(pauses))
    ((row, error),) = bench.outbox.dead
    assert (row.message, error) == (Do(name="deed"), "Conflict: never")
    assert bench.book.of("note") == [("a", 1)]  # the lane goes on
    assert len(bench.reports.of("buried")) == 1


async def test_an_outage_costs_no_attempt_however_long_it_lasts(bench: Bench) -> None:
    tries: list[float] = []

    async def deed(ctx: Context) -> object:
        assert ctx.durable is not None
        assert ctx.durable.attempts == 0
        tries.append(bench.clock.monotonic())
        if len(tries) < 1200:
            raise ProviderOutage(retry_after=30.0 if len(tries) == 1 else None)
        return None

    bench.book.deeds["deed"] = deed
    async with bench.system(settings=EngineSettings(outage_back_off=2.0)).running() as system:
        await bench.tell(system, Do(name="deed"))
        await bench.idle(3000)
    assert tries[1] - tries[0] >= 30  # as the provider asked
    assert max(later - earlier for earlier, later in itertools.pairwise(tries)) <= 31
    assert bench.outbox.rows == {}
    assert bench.outbox.dead == []


async def test_a_poison_message_does_not_starve_the_rest_of_its_address(bench: Bench) -> None:
    async def deed(ctx: Context) -> object:
        raise ZeroDivisionError

    bench.book.deeds["deed"] = deed
    kind = {"intensity": Intensity(failures=3, seconds=60.0)}
    async with bench.system(kind=kind).running() as system:
        await bench.tell(system, Do(name="deed"), lane="poison")
        for n in range(200):
            await bench.tell(system, Note(n=n), lane="good")
            await bench.idle(10)
        await bench.idle(400)
    assert [n for _, n in bench.book.of("note")] == list(range(200))
    assert len(bench.outbox.dead) == 1
    assert bench.outbox.rows == {}


async def test_a_message_to_a_kind_that_does_not_exist_ends_among_the_dead_letters(
    bench: Bench,
) -> None:
    async with bench.system().running() as system:
        await bench.tell(system, Note(), to=Address("gone", "a"))
        await bench.idle(2000)
    assert [error.split(":")[0] for _, error in bench.outbox.dead] == [NotFound.__name__]


async def test_timers_are_on_time_and_idle_ones_cost_nothing(bench: Bench) -> None:
    async with bench.system().running() as system:
        for n in range(200):
            at = bench.clock.now() + timedelta(days=30, seconds=n)
            await bench.tell(system, Note(n=n), at=at, lane=f"timer {n}")
        at = bench.clock.now() + timedelta(minutes=120)
        await bench.tell(system, Note(n=-1), at=at, lane="silence")
        asked = bench.outbox.calls["due"]
        await bench.idle(7000)
        assert bench.outbox.calls["due"] - asked <= 7000 / 30 + 5
        assert bench.book.of("note") == []
        while not bench.book.of("note"):
            await anyio.sleep(0.05)
        assert 0 <= (bench.clock.now() - at).total_seconds() < 0.4


async def test_a_store_that_is_away_is_asked_again_and_nothing_is_lost(bench: Bench) -> None:
    async with bench.system().running() as system:
        await bench.tell(system, Linger(), lane="a")
        await bench.book.begun.wait()
        await bench.tell(system, Note(n=1), lane="a")
        bench.outbox.down = True
        bench.book.gate.set()
        await bench.idle(300)
        failures = len(bench.reports.of("outbox_failed"))
        assert 5 <= failures <= 40
        bench.outbox.down = False
        await bench.idle(40)
    # It could not be marked done while the store was away, so it was delivered once more.
    assert bench.book.of("linger") == [("a", 0), ("a", 0)]
    assert bench.book.of("note") == [("a", 1)]
    assert bench.outbox.rows == {}


async def test_more_than_may_be_in_flight_wait_and_are_all_delivered(bench: Bench) -> None:
    together = most = 0

    async def deed(ctx: Context) -> object:
        nonlocal together, most
        together += 1
        most = max(most, together)
        await anyio.sleep(1)
        together -= 1
        bench.effects.append(ctx.address)
        return None

    bench.book.deeds["deed"] = deed
    async with bench.system(settings=EngineSettings(durable_in_flight=4)).running() as system:
        for n in range(25):
            await bench.tell(system, Do(name="deed"), to=Address("one", str(n)))
        await bench.idle(10)
    assert most == 4
    assert len(set(bench.effects)) == len(bench.effects) == 25


async def test_a_job_that_takes_over_a_durable_message_decides_when_it_is_done(
    bench: Bench,
) -> None:
    tries: list[int] = []

    async def work() -> object:
        tries.append(len(bench.outbox.rows))
        await anyio.sleep(5)
        if len(tries) < 3:
            raise ProviderOutage
        return None

    async def deed(ctx: Context) -> object:
        ctx.job("summary", work, take_reply=True)
        return None

    bench.book.deeds["deed"] = deed
    async with bench.system().running() as system:
        await bench.tell(system, Do(name="deed"))
        await bench.idle(4)
        assert len(bench.outbox.rows) == 1
        await bench.idle(60)
        assert system.stats().durable.done == 1
    assert tries == [1, 1, 1]
    assert bench.outbox.rows == {}


async def test_a_stop_in_the_middle_of_a_handler_leaves_its_message_for_the_next_process(
    bench: Bench,
) -> None:
    async with bench.system(settings=EngineSettings(stop_grace=1)).running() as system:
        await bench.tell(system, Linger(), Note(n=1))
        await bench.book.begun.wait()
    rows: list[DurableRow] = list(bench.outbox.rows.values())
    assert [row.attempts for row in rows] == [0, 0]
    bench.book.gate.set()
    async with bench.system().running():
        await bench.idle(1)
    assert bench.book.of("linger") == [("a", 0), ("a", 0)]
    assert bench.book.of("note") == [("a", 1)]


async def test_only_a_durable_message_can_be_marked_or_repeated(bench: Bench) -> None:
    async def deed(ctx: Context) -> object:
        for refused in (ctx.again, ctx.mark_done):
            with pytest.raises(ValueError):
                refused()
        with pytest.raises(ValueError):
            await ctx.done(None)
        return ctx.durable

    bench.book.deeds["deed"] = deed
    async with bench.system().running() as system:
        assert await system.ask(ONE, Do(name="deed"), timeout=1) is None
