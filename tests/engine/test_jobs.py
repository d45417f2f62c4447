"""Slow work beside an actor."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest
from anyio.lowlevel import checkpoint

from mira.actors.runtime.actor import Context, Job, Outcome
from mira.actors.runtime.system import EngineSettings
from mira.errors import ActorFailed, Conflict, DeadlineExceeded, RateLimited, SystemStopped
from mira.messages.base import Address

from .parts import ONE, TWO, Book, Do, Note, Reports, attempt, system_of

pytestmark = pytest.mark.anyio


def starts(
    work: Callable[[], Awaitable[object]],
    *,
    kind: str = "think",
    reply: bool = False,
    tell: bool = True,
) -> Callable[[Context], Awaitable[object]]:
    """A deed that starts a job and notes 1 for a value, 2 for an error, 3 for a cancellation."""

    def then(outcome: Outcome[object]) -> Note:
        return Note(n=3 if outcome.cancelled else 1 if outcome.ok else 2)

    async def deed(ctx: Context) -> object:
        ctx.job(kind, work, then=then if tell else None, take_reply=reply)
        return "started"

    return deed


async def until(condition: Callable[[], object]) -> None:
    with anyio.fail_after(5):
        while not condition():
            await checkpoint()


async def test_a_job_runs_while_its_actor_handles_messages_and_its_outcome_is_a_message() -> None:
    book = Book()

    async def work() -> object:
        await book.gate.wait()
        return "thought"

    book.deeds["start"] = starts(work)
    async with system_of(book).running() as system:
        assert await system.ask(ONE, Do(name="start"), timeout=5) == "started"
        assert await system.ask(ONE, Note(n=0), timeout=5) == 1
        book.gate.set()
        await until(lambda: ("a", 1) in book.of("note"))
        assert system.stats().jobs["think"].ended == 1
    assert book.of("note") == [("a", 0), ("a", 1)]


async def test_a_job_that_takes_the_reply_answers_the_ask_with_its_value_or_error() -> None:
    book, reports = Book(), Reports()

    async def value() -> object:
        await checkpoint()
        return "thought"

    async def refusal() -> object:
        raise Conflict

    async def bug() -> object:
        raise ZeroDivisionError

    book.deeds |= {
        "value": starts(value, reply=True, tell=False),
        "refusal": starts(refusal, reply=True),
        "bug": starts(bug, reply=True, tell=False),
    }
    async with system_of(book, reports).running() as system:
        assert await system.ask(ONE, Do(name="value"), timeout=5) == "thought"
        assert await attempt(system.ask(ONE, Do(name="refusal"), timeout=5)) is Conflict
        assert await attempt(system.ask(ONE, Do(name="bug"), timeout=5)) is ActorFailed
        await until(lambda: book.of("note"))
    assert book.of("note") == [("a", 2)]
    assert isinstance(reports.of("job_failed")[0][2], ZeroDivisionError)


async def test_at_most_so_many_jobs_of_a_kind_run_and_the_rest_wait_in_order() -> None:
    book = Book()
    begun: list[int] = []
    gates = [anyio.Event() for _ in range(5)]

    def work(n: int) -> Callable[[], Awaitable[object]]:
        async def wait() -> object:
            begun.append(n)
            await gates[n].wait()
            return n

        return wait

    async def start(ctx: Context) -> object:
        for n in range(5):
            ctx.job("think", work(n))
        ctx.job("other", work(0))
        with pytest.raises(RateLimited):
            ctx.job("think", work(9))
        return None

    book.deeds["start"] = start
    settings = EngineSettings(jobs={"think": 2}, jobs_waiting=3)
    async with system_of(book, settings=settings).running() as system:
        await system.ask(ONE, Do(name="start"), timeout=5)
        await until(lambda: len(begun) == 3)
        assert sorted(begun) == [0, 0, 1]
        assert (system.stats().jobs["think"].running, system.stats().jobs["think"].waiting) == (
            2,
            3,
        )
        gates[1].set()
        await until(lambda: len(begun) == 4)
        assert begun[-1] == 2
        for gate in gates:
            gate.set()
        await until(lambda: system.stats().jobs["think"].running == 0)
    assert sorted(begun) == [0, 0, 1, 2, 3, 4]


async def test_a_job_can_be_cancelled_while_it_runs_and_while_it_waits() -> None:
    book = Book()
    jobs: list[Job] = []

    async def start(ctx: Context) -> object:
        def then(outcome: Outcome[None]) -> Note:
            return Note(n=3 if outcome.cancelled else 1)

        jobs.extend(ctx.job("think", anyio.sleep_forever, then=then) for _ in range(2))
        return None

    book.deeds["start"] = start
    async with system_of(book, settings=EngineSettings(jobs_default=1)).running() as system:
        await system.ask(ONE, Do(name="start"), timeout=5)
        await until(lambda: system.stats().jobs["think"].running)
        jobs[1].cancel()
        jobs[0].cancel()
        await until(lambda: len(book.of("note")) == 2)
        assert jobs[0].done
    assert book.of("note") == [("a", 3), ("a", 3)]


async def test_the_deadline_of_an_ask_cancels_the_job_that_took_its_reply() -> None:
    book = Book()
    cancelled = anyio.Event()

    async def work() -> object:
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()
        return None

    book.deeds["start"] = starts(work, reply=True)
    async with system_of(book).running() as system:
        answer = await attempt(system.ask(ONE, Do(name="start"), timeout=0.05))
        assert answer is DeadlineExceeded
        await cancelled.wait()
        await until(lambda: book.of("note"))
    assert book.of("note") == [("a", 3)]
    assert len(book.of("load")) == 1  # the actor itself was not disturbed


async def test_an_answer_can_be_taken_over_only_if_there_is_one() -> None:
    book, reports = Book(), Reports()
    book.deeds["start"] = starts(anyio.sleep_forever, reply=True)
    async with system_of(book, reports).running() as system:
        await system.tell(ONE, Do(name="start"))
        await system.ask(ONE, Note(), timeout=5)
    assert isinstance(reports.of("actor_failed")[0][2], ValueError)


async def test_a_result_reaches_an_actor_whose_mailbox_is_full() -> None:
    book = Book()

    async def work() -> object:
        await checkpoint()
        return 1

    async def start_and_wait(ctx: Context) -> object:
        ctx.job("think", work, then=lambda outcome: Note(n=5))
        await book.gate.wait()
        return None

    book.deeds["start"] = start_and_wait
    async with system_of(book, kind={"capacity": 1}).running() as system:
        await system.tell(ONE, Do(name="start"))
        await until(lambda: system.stats().jobs)
        await system.tell(ONE, Note(n=1))
        await until(lambda: system.stats().jobs["think"].ended)
        book.gate.set()
        await system.ask(ONE, Note(n=9), timeout=5)
    assert sorted(n for _, n in book.of("note")) == [1, 5, 9]


async def test_a_job_may_ask_further_down_as_its_actor_may() -> None:
    book = Book()

    async def start(ctx: Context) -> object:
        async def work() -> object:
            return await ctx.ask(TWO, Note(n=4), timeout=5)

        ctx.job("think", work, take_reply=True)
        return None

    book.deeds["start"] = start
    async with system_of(book).running() as system:
        assert await system.ask(ONE, Do(name="start"), timeout=5) == 1


async def test_at_stop_jobs_are_cancelled_and_the_asks_they_took_are_answered() -> None:
    book = Book()
    answers = []

    async def ask(key: str) -> None:
        answers.append(
            await attempt(system.ask(Address("one", key), Do(name="start"), timeout=3600))
        )

    book.deeds["start"] = starts(anyio.sleep_forever, reply=True)
    settings = EngineSettings(stop_grace=0.0, jobs_default=1)
    system = system_of(book, settings=settings)
    async with anyio.create_task_group() as group, system.running():
        group.start_soon(ask, "a")
        group.start_soon(ask, "b")  # waits for its turn
        await until(lambda: system.jobs.stats and system.jobs.stats["think"].waiting)
    assert answers == [SystemStopped, SystemStopped]
    assert book.of("note") == []
