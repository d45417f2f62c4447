"""Batches through the official SDK, against a double that can fail at each step."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from bench.provider_double import ProviderDouble
from bench.provider_script import BatchFault, BatchScript, Behaviour, Script
from mira.clock import SystemClock
from mira.errors import ProviderOutage, ProviderRejected
from mira.llm import anthropic
from mira.llm.anthropic_batch import AnthropicBatches
from mira.llm.base import StopReason
from mira.llm.batch import BatchItem, ItemOutcome, ItemResult
from mira.messages.content import plain_text
from tests.contract.llm_support import CLAUDE, _plain, a_key, ask, user

pytestmark = pytest.mark.anyio
SCHEMA = '{"type":"object","properties":{},"required":[],"additionalProperties":false}'


@pytest.fixture
async def double() -> AsyncIterator[ProviderDouble]:
    async with ProviderDouble(Behaviour(echo=True)) as started:
        yield started


@pytest.fixture
async def batches(double: ProviderDouble) -> AsyncIterator[AnthropicBatches]:
    connection = anthropic.connect(a_key, double.url, transport=_plain())
    yield AnthropicBatches(CLAUDE, connection, SystemClock())
    await connection.aclose()


def items(count: int, **fields: Any) -> list[BatchItem]:
    return [
        BatchItem(name=f"item-{n}", request=ask(user(f"words {n}"), thinking=False, **fields))
        for n in range(count)
    ]


def with_faults(double: ProviderDouble, *faults: BatchFault, **fields: Any) -> None:
    double.script = Script(
        default=Behaviour(echo=True), batches=BatchScript(faults=list(faults), **fields)
    )


async def read(
    batches: AnthropicBatches, batch_id: str, came: list[ItemResult] | None = None
) -> list[ItemResult]:
    """All results; `came` holds those that came before a failure."""
    came = [] if came is None else came
    async with batches.results(batch_id) as results:
        async for result in results:
            came.append(result)
    return came


async def test_each_item_is_answered_under_the_name_it_was_given(
    batches: AnthropicBatches, double: ProviderDouble
) -> None:
    made = await batches.create(items(3, answer_schema=SCHEMA))
    assert (made.items, made.ended) == (3, True)
    assert made.expires_at - made.created_at == timedelta(hours=24)
    results = {result.name: result for result in await read(batches, made.id)}
    assert sorted(results) == ["item-0", "item-1", "item-2"]
    answer = results["item-1"].answer
    assert answer is not None
    assert plain_text(answer.blocks) == "words 1"
    assert (answer.stop, answer.provider, answer.model) == (StopReason.END, "anthropic", CLAUDE)
    assert answer.usage.reported
    assert answer.usage.output_tokens > 0
    sent = double.bodies[0]
    assert sent["output_config"]["format"]["type"] == "json_schema"
    assert "stream" not in sent


async def test_a_batch_is_in_progress_until_it_has_ended(
    batches: AnthropicBatches, double: ProviderDouble
) -> None:
    with_faults(double, polls=2)
    made = await batches.create(items(1))
    assert not made.ended
    seen = [(await batches.retrieve(made.id)).ended for _ in range(3)]
    assert seen == [False, False, True]


async def test_items_that_failed_say_how_and_quote_nothing(
    batches: AnthropicBatches, double: ProviderDouble
) -> None:
    with_faults(double, outcomes=["errored", "expired", "canceled", "succeeded"])
    made = await batches.create(items(4))
    results = await read(batches, made.id)
    assert [r.outcome for r in results] == [
        ItemOutcome.ERRORED,
        ItemOutcome.EXPIRED,
        ItemOutcome.CANCELED,
        ItemOutcome.SUCCEEDED,
    ]
    assert "told to fail" not in results[0].error
    assert "api_error" in results[0].error


async def test_a_batch_whose_creation_was_answered_to_nobody_is_found_in_the_list(
    batches: AnthropicBatches, double: ProviderDouble
) -> None:
    with_faults(double, BatchFault(at="create", how="lost"))
    before = SystemClock().now() - timedelta(minutes=1)
    with pytest.raises(ProviderOutage):
        await batches.create(items(2))
    [found] = [batch async for batch in batches.newest(before)]
    assert found.items == 2
    assert {r.name for r in await read(batches, found.id)} == {"item-0", "item-1"}
    assert [b async for b in batches.newest(before + timedelta(hours=1))] == []


@pytest.mark.parametrize("status", [500, 529, 429])
async def test_a_provider_that_cannot_now_is_an_outage_at_every_step(
    batches: AnthropicBatches, double: ProviderDouble, status: int
) -> None:
    made = await batches.create(items(1))
    steps = ("create", "retrieve", "list", "results", "cancel")
    with_faults(double, *(BatchFault(at=step, status=status) for step in steps))  # type: ignore[arg-type]
    for step in (
        batches.create(items(1)),
        batches.retrieve(made.id),
        anext(batches.newest(made.created_at)),
        read(batches, made.id),
        batches.cancel(made.id),
    ):
        with pytest.raises(ProviderOutage):
            await step
    assert len(double.batches.held) == 1


async def test_a_batch_that_has_vanished_is_refused_with_its_status(
    batches: AnthropicBatches,
) -> None:
    with pytest.raises(ProviderRejected) as caught:
        await batches.retrieve("msgbatch_unknown")
    assert caught.value.http_status == 404


async def test_results_that_break_off_keep_what_came_and_then_are_an_outage(
    batches: AnthropicBatches, double: ProviderDouble
) -> None:
    made = await batches.create(items(3))
    with_faults(double, BatchFault(at="results", how="cut", after=1))
    came: list[ItemResult] = []
    with pytest.raises(ProviderOutage):
        await read(batches, made.id, came)
    assert [result.name for result in came] == ["item-0"]
    assert len(await read(batches, made.id)) == 3


async def test_a_cancelled_batch_ends_and_says_so_of_its_items(
    batches: AnthropicBatches, double: ProviderDouble
) -> None:
    with_faults(double, polls=99)
    made = await batches.create(items(2))
    await batches.cancel(made.id)
    assert (await batches.retrieve(made.id)).ended
    assert [r.outcome for r in await read(batches, made.id)] == [ItemOutcome.CANCELED] * 2
