"""Retries, deadlines and books of one model."""

from __future__ import annotations

import anyio
import pytest

from mira.clock import ManualClock
from mira.errors import (
    ContextOverflow,
    ProviderError,
    ProviderMalformed,
    ProviderOutage,
    ProviderRejected,
)
from mira.ids import SeededIds
from mira.llm.base import CallRecord, Dropped, Finished, Metered, Progress, Retrying, TextDelta
from mira.llm.routing import Routing
from mira.llm.scripted import Answer, Raise, ScriptedProvider, Wait, says
from mira.messages.content import Text
from mira.messages.turn import Usage
from tests.unit.llm_routing_support import ASKED, DOWN, heard, model, reading, routing, settle

pytestmark = pytest.mark.anyio


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def test_an_answer_goes_through_with_its_one_call_on_record(clock: ManualClock) -> None:
    first = model(clock, [Wait(2), TextDelta("Hi"), Wait(1), *says("Hi")[1:]])
    reader = await heard(routing(clock, first), clock)
    assert reader.finished.blocks == (Text(text="Hi"),)
    [call] = reader.finished.calls
    assert (call.provider, call.model, call.error) == ("first", "one", None)
    assert call.first_event_ms == pytest.approx(2000)
    assert call.total_ms == pytest.approx(3000)
    assert call.usage == reader.finished.usage
    assert reader.calls == reader.finished.calls


async def test_an_outage_is_tried_again_after_a_pause_that_grows(clock: ManualClock) -> None:
    first = model(clock, DOWN, DOWN, says("Hi"))
    reader = await heard(routing(clock, first, back_off=1.0), clock)
    one, two = reader.of(Retrying)
    assert 0.5 <= one.delay <= 1.0
    assert 1.0 <= two.delay <= 2.0
    assert one.source == "first:one"
    assert one.reason == "It is down."
    assert [call.error for call in reader.finished.calls] == [
        "provider_error",
        "provider_error",
        None,
    ]


async def test_pauses_of_different_callers_differ(clock: ManualClock) -> None:
    delays = set()
    for seed in range(5):
        route = Routing([model(clock, DOWN, says("Hi"))], clock, SeededIds(seed))
        delays.add((await heard(route, clock)).of(Retrying)[0].delay)
    assert len(delays) == 5


async def test_what_was_streamed_before_a_retry_is_followed_by_word_of_it(
    clock: ManualClock,
) -> None:
    first = model(clock, [TextDelta("Hal"), Raise(DOWN)], says("Hello", pieces=1))
    reader = await heard(routing(clock, first), clock)
    kinds = [type(item) for item in reader.items]
    assert kinds == [TextDelta, Retrying, TextDelta, Finished]


async def test_after_the_last_attempt_the_outage_is_raised_with_all_calls(
    clock: ManualClock,
) -> None:
    first = model(clock, DOWN)
    reader = await heard(routing(clock, first, attempts=3), clock)
    assert isinstance(reader.error, ProviderOutage)
    assert len(first.requests) == 3
    assert len(reader.error.calls) == 3
    assert reader.error.calls == reader.calls


async def test_retry_after_is_waited_for_and_not_cut_short(clock: ManualClock) -> None:
    first = model(clock, ProviderOutage("Busy.", retry_after=12.0), says("Hi"))
    began = clock.monotonic()
    reader = await heard(routing(clock, first), clock)
    assert 12.0 <= reader.of(Retrying)[0].delay < 13.0
    assert clock.monotonic() - began >= 12.0
    assert reader.finished.blocks == (Text(text="Hi"),)


async def test_a_retry_after_that_is_too_long_is_not_waited_for(clock: ManualClock) -> None:
    first = model(clock, ProviderOutage("Busy.", retry_after=3600.0))
    reader = await heard(routing(clock, first), clock, seconds=1)
    assert isinstance(reader.error, ProviderOutage)
    assert reader.error.retry_after == 3600.0
    assert len(first.requests) == 1


async def test_retries_end_when_the_time_for_all_of_them_is_over(clock: ManualClock) -> None:
    slow: Answer = [Wait(25), Raise(DOWN)]
    first = model(clock, slow)
    reader = await heard(routing(clock, first, attempts=100, total=60.0), clock)
    assert isinstance(reader.error, ProviderOutage)
    assert len(first.requests) == 3


async def test_a_malformed_answer_is_asked_for_once_more(clock: ManualClock) -> None:
    blank = ProviderMalformed("Blank.")
    reader = await heard(routing(clock, model(clock, blank, says("Hi"))), clock)
    assert reader.finished.blocks == (Text(text="Hi"),)
    stubborn = model(clock, blank)
    reader = await heard(routing(clock, stubborn), clock)
    assert isinstance(reader.error, ProviderMalformed)
    assert len(stubborn.requests) == 2


@pytest.mark.parametrize(
    "error",
    [
        ProviderRejected("No.", http_status=400),
        ProviderRejected("No."),
        ContextOverflow("Too long.", http_status=400),
    ],
)
async def test_a_refusal_of_the_request_is_raised_at_once_whoever_else_is_there(
    clock: ManualClock, error: ProviderError
) -> None:
    first, second = model(clock, error), model(clock, says("Hi"), name="second:two")
    reader = await heard(routing(clock, first, second), clock, seconds=1)
    assert reader.error is error
    assert len(first.requests) == 1
    assert second.requests == []
    [call] = error.calls
    assert isinstance(call, CallRecord)


async def test_a_key_that_was_changed_meanwhile_is_tried_at_once(clock: ManualClock) -> None:
    class Rekeyed(ScriptedProvider):
        refreshed = 0

        async def refresh(self) -> bool:
            self.refreshed += 1
            return True

    wrong = ProviderRejected("Wrong key.", http_status=401)
    first = Rekeyed([wrong, says("Hi")], clock=clock)
    reader = await heard(routing(clock, first), clock, seconds=1)
    assert reader.finished.blocks == (Text(text="Hi"),)
    stubborn = Rekeyed([wrong], clock=clock)
    reader = await heard(routing(clock, stubborn), clock, seconds=1)
    assert isinstance(reader.error, ProviderRejected)
    assert stubborn.refreshed == 1


# Deadlines.


async def test_a_first_word_that_does_not_come_is_an_outage(clock: ManualClock) -> None:
    first = model(clock, [Wait(1e6)], says("Hi"))
    began = clock.monotonic()
    reader = await heard(routing(clock, first, first_token=40.0, stall=10.0), clock)
    assert reader.finished.blocks == (Text(text="Hi"),)
    assert 40.0 <= clock.monotonic() - began < 43.0
    assert first.open == 0


async def test_a_stall_between_words_is_an_outage(clock: ManualClock) -> None:
    first = model(clock, [TextDelta("Hel"), Wait(1e6)], says("Hello"))
    began = clock.monotonic()
    reader = await heard(routing(clock, first, first_token=40.0, stall=10.0), clock)
    assert reader.of(Retrying)[0].reason == "first:one stalled in its answer."
    assert 10.0 <= clock.monotonic() - began < 13.0


async def test_work_that_is_not_shown_keeps_a_stream_alive(clock: ManualClock) -> None:
    working = [step for _ in range(9) for step in (Wait(8), Progress())]
    first = model(clock, [*working, *says("Hi")])
    reader = await heard(routing(clock, first, first_token=10.0, stall=10.0), clock)
    assert reader.of(Retrying) == []
    assert reader.of(Progress) == []
    assert reader.finished.blocks == (Text(text="Hi"),)


async def test_notes_of_the_adapter_are_no_sign_of_life(clock: ManualClock) -> None:
    counted = Metered(Usage(input_tokens=77, calls=1))
    notes = [step for _ in range(9) for step in (Wait(8), Dropped("effort"), counted)]
    first = model(clock, notes, says("Hi"))
    reader = await heard(routing(clock, first, first_token=30.0, stall=10.0), clock)
    assert len(reader.of(Retrying)) == 1
    failed, good = reader.finished.calls
    assert failed.first_event_ms is None
    assert failed.usage.input_tokens == 77
    assert good.error is None


async def test_a_slow_reader_is_not_mistaken_for_a_slow_model(clock: ManualClock) -> None:
    first = model(clock, says("one two three", pieces=3))
    texts = []
    route = routing(clock, first, stall=10.0)

    async def read() -> None:
        async with route.stream(ASKED) as items:
            async for item in items:
                texts.append(item)
                await clock.sleep(50)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        for _ in range(60):
            await settle()
            clock.advance(5)
    assert [type(item) for item in texts] == [TextDelta] * 3 + [Finished]


async def test_leaving_early_closes_the_call_and_puts_it_on_record(clock: ManualClock) -> None:
    first = model(clock, [TextDelta("Hel"), Wait(1e6)])
    async with routing(clock, first).stream(ASKED) as items:
        assert await anext(items) == TextDelta("Hel")
        assert first.open == 1
    assert first.open == 0
    [call] = items.calls
    assert call.error == "cancelled"
    assert not call.usage.reported
    assert clock.sleeping == 0


async def test_cancelling_closes_the_call(clock: ManualClock) -> None:
    first = model(clock, [TextDelta("Hel"), Wait(1e6)])
    async with reading(routing(clock, first)) as reader:
        assert first.open == 1
    assert first.open == 0
    assert not reader.done
    assert reader.error is None


async def test_an_error_of_the_reader_comes_out_as_it_is(clock: ManualClock) -> None:
    first = model(clock, says("Hi"))

    async def read() -> None:
        async with routing(clock, first).stream(ASKED) as items:
            await anext(items)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await read()
    assert first.open == 0
