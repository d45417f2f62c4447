"""When one model is given up and another goes on, and how the first one returns."""

from __future__ import annotations

import pytest

from mira.clock import ManualClock
from mira.errors import ProviderOutage, ProviderRejected
from mira.ids import SeededIds
from mira.llm.base import Switched, TextDelta
from mira.llm.health import REST, Health
from mira.llm.routing import Routing
from mira.llm.scripted import Raise, ScriptedProvider, says
from tests.unit.llm_routing_support import DOWN, heard, model, reading, routing, settle

pytestmark = pytest.mark.anyio


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def test_the_next_model_goes_on_when_the_first_is_given_up(clock: ManualClock) -> None:
    first = model(clock, [TextDelta("Hal"), Raise(DOWN)])
    second = model(clock, says("Hello"), name="second:two")
    reader = await heard(routing(clock, first, second, attempts=2), clock)
    [switched] = reader.of(Switched)
    assert (switched.source, switched.target) == ("first:one", "second:two")
    assert switched.reason == "It is down."
    assert reader.finished.provider == "second"
    assert [(c.provider, c.error) for c in reader.finished.calls] == [
        ("first", "provider_error"),
        ("first", "provider_error"),
        ("second", None),
    ]


@pytest.mark.parametrize("status", [401, 402, 403, 404, 429])
async def test_trouble_with_the_account_lets_the_next_model_answer(
    clock: ManualClock, status: int
) -> None:
    first = model(clock, ProviderRejected("No.", http_status=status))
    second = model(clock, says("Hi"), name="second:two")
    reader = await heard(routing(clock, first, second), clock, seconds=1)
    assert reader.finished.provider == "second"
    assert len(first.requests) == 1


async def test_with_another_model_at_hand_nobody_waits_long(clock: ManualClock) -> None:
    first = model(clock, ProviderOutage("Busy.", retry_after=12.0))
    second = model(clock, says("Hi"), name="second:two")
    reader = await heard(routing(clock, first, second), clock, seconds=1)
    assert reader.finished.provider == "second"


async def test_after_an_outage_the_first_model_rests_and_is_probed_before_it_returns(
    clock: ManualClock,
) -> None:
    first = model(clock, DOWN, says("I am back."))
    second = model(clock, says("Hi"), name="second:two")
    route = routing(clock, first, second, attempts=1)
    await heard(route, clock)

    # At rest: not asked, not probed, and the client is told who answers.
    reader = await heard(route, clock)
    assert reader.finished.provider == "second"
    assert [s.source for s in reader.of(Switched)] == ["first:one"]
    assert (len(first.requests), first.probes) == (1, 0)

    # Its rest is over, but it is not well: probed, and not asked.
    clock.advance(REST)
    first.down = ProviderOutage("Still down.")
    reader = await heard(route, clock)
    assert reader.finished.provider == "second"
    assert (len(first.requests), first.probes) == (1, 1)

    # The rest after a second outage is longer.
    clock.advance(REST)
    await heard(route, clock)
    assert first.probes == 1

    clock.advance(REST)
    first.down = None
    reader = await heard(route, clock)
    assert reader.finished.provider == "first"
    assert reader.of(Switched) == []
    assert first.probes == 2

    # And it is trusted again, without a probe.
    await heard(route, clock)
    assert first.probes == 2


async def test_a_probe_that_hangs_does_not_hold_up_the_answer(clock: ManualClock) -> None:
    class Hanging(ScriptedProvider):
        async def probe(self) -> None:
            await clock.sleep(1e6)

    first = Hanging([DOWN], clock=clock, name="first:one")
    second = model(clock, says("Hi"), name="second:two")
    route = routing(clock, first, second, attempts=1, probe=5.0)
    await heard(route, clock)
    clock.advance(REST)
    began = clock.monotonic()
    reader = await heard(route, clock)
    assert reader.finished.provider == "second"
    assert clock.monotonic() - began < 6


async def test_only_one_request_probes_while_the_others_go_on(clock: ManualClock) -> None:
    class Slow(ScriptedProvider):
        async def probe(self) -> None:
            self.probes += 1
            await clock.sleep(3)

    first = Slow([DOWN, says("Back.")], clock=clock, name="first:one")
    second = model(clock, says("Hi"), name="second:two")
    route = routing(clock, first, second, attempts=1)
    await heard(route, clock)
    clock.advance(REST)
    async with reading(route) as probing, reading(route) as other:
        await settle()
        assert other.done
        assert other.finished.provider == "second"
        assert not probing.done
        clock.advance(3)
        await settle()
        assert probing.finished.provider == "first"
    assert first.probes == 1


async def test_a_model_at_rest_is_still_better_than_none(clock: ManualClock) -> None:
    first = model(clock, DOWN, says("I am back."))
    second = model(clock, says("Hi"), DOWN, name="second:two")
    route = routing(clock, first, second, attempts=1)
    await heard(route, clock)
    reader = await heard(route, clock)
    assert reader.finished.provider == "first"


async def test_when_all_are_down_the_last_outage_is_raised_with_every_call(
    clock: ManualClock,
) -> None:
    first, second = model(clock, DOWN), model(clock, DOWN, name="second:two")
    reader = await heard(routing(clock, first, second, attempts=2), clock)
    assert isinstance(reader.error, ProviderOutage)
    assert [c.provider for c in reader.calls] == ["first", "first", "second", "second"]


async def test_health_is_shared_by_routings(clock: ManualClock) -> None:
    health = Health(clock)
    first, second = model(clock, DOWN), model(clock, says("Hi"), name="second:two")
    await heard(routing(clock, first, second, health=health, attempts=1), clock)
    await heard(routing(clock, first, second, health=health, attempts=1), clock)
    assert len(first.requests) == 1


async def test_a_model_that_is_alone_never_rests(clock: ManualClock) -> None:
    first = model(clock, DOWN, says("Hi"))
    route = routing(clock, first, attempts=1)
    await heard(route, clock)
    assert (await heard(route, clock)).finished.provider == "first"
    assert first.probes == 0


async def test_a_new_chain_serves_the_next_request(clock: ManualClock) -> None:
    first, second = model(clock, says("A")), model(clock, says("B"), name="second:two")
    route = routing(clock, first)
    route.use([second])
    assert route.name == "second:two"
    assert (await heard(route, clock)).finished.provider == "second"


def test_a_routing_needs_a_model(clock: ManualClock) -> None:
    with pytest.raises(ValueError, match="at least one"):
        Routing([], clock, SeededIds())
