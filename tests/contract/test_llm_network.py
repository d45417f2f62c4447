"""The adapters on real sockets, against a provider that misbehaves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Literal

import anyio
import pytest

from bench.provider_double import ProviderDouble
from bench.provider_script import Behaviour, Call, Cut, Failure
from mira.clock import SystemClock
from mira.errors import ProviderOutage, ProviderRejected
from mira.ids import SeededIds
from mira.llm import anthropic, openai
from mira.llm.anthropic import AnthropicProvider
from mira.llm.base import Provider, Retrying, TextDelta
from mira.llm.openai import OpenAIProvider
from mira.llm.routing import Policy, Routing
from mira.messages.content import Text, ToolResult
from tests.contract.llm_support import (
    CLAUDE,
    GPT,
    ask,
    assistant,
    claude_at,
    gpt_at,
    hear,
    no_key,
    tool,
    user,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
async def double() -> AsyncIterator[ProviderDouble]:
    async with ProviderDouble() as started:
        yield started


@pytest.fixture(params=[claude_at, gpt_at])
async def provider(
    double: ProviderDouble, request: pytest.FixtureRequest
) -> AsyncIterator[Provider]:
    made: Provider = request.param(double)
    yield made
    await made.aclose()


async def quiet(double: ProviderDouble, count: int = 0) -> None:
    """Wait until the provider answers so many requests."""
    with anyio.fail_after(20):
        await double.until_open(count)


async def test_an_answer_comes_as_it_was_said(double: ProviderDouble, provider: Provider) -> None:
    text = "Grüß dich, 世界!  Two  spaces,\nand \N{PARTY POPPER} \u202eright to left."
    double.queue(Behaviour(text=text, thinking="let me think", empty_blocks=True))
    heard = await hear(provider, ask())
    assert heard.text == text
    assert heard.thinking == "let me think"
    assert Text(text=text) in heard.finished.blocks


async def test_no_key_is_needed_where_there_is_an_address(
    double: ProviderDouble, provider: Provider
) -> None:
    await hear(provider, ask())
    assert double.served == 1
    await provider.probe()


async def test_leaving_the_stream_closes_the_connection(
    double: ProviderDouble, provider: Provider
) -> None:
    double.queue(Behaviour(tokens=1000, token_ms=20))
    async with provider.stream(ask()) as items:
        async for item in items:
            if isinstance(item, TextDelta):
                break
    await quiet(double)
    assert double.stamps[-1].outcome == "aborted"


async def test_cancelling_the_task_closes_the_connection(
    double: ProviderDouble, provider: Provider
) -> None:
    double.queue(Behaviour(tokens=1000, token_ms=20))
    begun = anyio.Event()

    async def listen() -> None:
        async with provider.stream(ask()) as items:
            async for item in items:
                if isinstance(item, TextDelta):
                    begun.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        await begun.wait()
        tasks.cancel_scope.cancel()
    await quiet(double)
    assert double.stamps[-1].outcome == "aborted"


async def test_cancelling_before_the_first_word_closes_the_connection(
    double: ProviderDouble, provider: Provider
) -> None:
    double.queue(Behaviour(first_token_ms=60_000))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hear, provider, ask())
        await quiet(double, 1)
        tasks.cancel_scope.cancel()
    await quiet(double)


@pytest.mark.parametrize("how", ["disconnect", "end", "error"])
@pytest.mark.parametrize("after", [0, 3])
async def test_an_answer_that_is_cut_is_an_outage(
    double: ProviderDouble,
    provider: Provider,
    how: Literal["disconnect", "end", "error"],
    after: int,
) -> None:
    double.queue(Behaviour(cut=Cut(how=how, after=after)))
    with pytest.raises(ProviderOutage) as raised:
        await hear(provider, ask())
    assert type(raised.value) is ProviderOutage


@pytest.mark.parametrize("make", [claude_at, gpt_at])
async def test_a_refused_connection_is_an_outage(
    make: Callable[[ProviderDouble], Provider],
) -> None:
    async with ProviderDouble() as double:
        provider = make(double)
    with pytest.raises(ProviderOutage):
        await hear(provider, ask())
    with pytest.raises(ProviderOutage):
        await provider.probe()
    await provider.aclose()


@pytest.mark.parametrize("how", ["silence", "pings"])
async def test_a_stall_is_found_though_pings_go_on_and_the_next_call_answers(
    double: ProviderDouble, provider: Provider, how: Literal["silence", "pings"]
) -> None:
    double.queue(Behaviour(cut=Cut(how=how, after=2)), Behaviour(text="Here I am."))
    policy = Policy(first_token=20, stall=0.4, probe=20, back_off=0.01)
    routing = Routing([provider], SystemClock(), SeededIds(), policy=policy)
    async with routing.stream(ask()) as items:
        heard = [item async for item in items]
    assert any(isinstance(item, Retrying) for item in heard)
    finished = heard[-1]
    assert finished.blocks == (Text(text="Here I am."),)  # type: ignore[union-attr]
    await quiet(double)
    assert [stamp.outcome for stamp in double.stamps] == ["aborted", "complete"]


async def test_waiting_is_as_long_as_the_provider_asks(
    double: ProviderDouble, provider: Provider
) -> None:
    busy = Failure(status=429, type="rate_limit_error", retry_after=0.3)
    double.queue(Behaviour(error=busy), Behaviour(text="Now."))
    policy = Policy(back_off=0.01)
    async with Routing([provider], SystemClock(), SeededIds(), policy=policy).stream(
        ask()
    ) as items:
        heard = [item async for item in items]
    first, second = double.stamps
    assert second.received - first.received >= 0.3
    assert heard[-1].blocks == (Text(text="Now."),)  # type: ignore[union-attr]


async def test_a_call_without_arguments_is_the_same_on_both_wires(
    double: ProviderDouble, provider: Provider
) -> None:
    modes: tuple[Literal["empty", "fragments", "whole"], ...] = ("empty", "fragments", "whole")
    for mode in modes:
        double.queue(Behaviour(tools=(Call("clock", {}, mode),), text=""))
        heard = await hear(provider, ask())
        assert [use.arguments for use in heard.uses] == ["{}"]


async def test_twenty_answers_at_once_stay_apart(
    double: ProviderDouble, provider: Provider
) -> None:
    double.script.default = Behaviour(echo=True, token_ms=1)
    heard: dict[int, str] = {}

    async def one(number: int) -> None:
        text = f"number {number} of a score, please"
        heard[number] = (await hear(provider, ask(user(text)))).text

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(one, number)
    assert heard == {n: f"number {n} of a score, please" for n in range(20)}


async def test_the_only_model_of_an_address_is_found(double: ProviderDouble) -> None:
    found = gpt_at(double, model="")
    heard = await hear(found, ask())
    assert heard.finished.model == "double-1"
    assert found.name == "openai:double-1"
    await found.aclose()


@pytest.mark.parametrize("make", [claude_at, gpt_at])
@pytest.mark.parametrize("tail", ["", "/", "/v1", "/v1/"])
async def test_an_address_with_or_without_v1_is_the_same_place(
    double: ProviderDouble, make: Callable[[ProviderDouble, str], Provider], tail: str
) -> None:
    provider = make(double, tail)
    await hear(provider, ask())
    await provider.aclose()


@pytest.mark.parametrize(
    "provider",
    [
        AnthropicProvider(CLAUDE, anthropic.connect(no_key), SystemClock()),
        OpenAIProvider(GPT, openai.connect(no_key), SystemClock()),
    ],
)
async def test_without_key_and_address_no_call_is_made(provider: Provider) -> None:
    with pytest.raises(ProviderRejected) as raised:
        await hear(provider, ask())
    assert raised.value.http_status == 401


async def test_signatures_survive_the_whole_way_and_back(double: ProviderDouble) -> None:
    provider = claude_at(double)
    signature = "".join(map(chr, range(0x20, 0x7F))) + "äöü=="
    double.queue(
        Behaviour(thinking="hm  \n", signature=signature, tools=(Call("clock"),), text=""),
        Behaviour(text="Noon."),
    )
    question = user("What time is it?")
    heard = await hear(provider, ask(question))
    result = ToolResult(call_id=heard.uses[0].call_id, text="12:00")
    again = await hear(provider, ask(question, assistant(*heard.finished.blocks), tool(result)))
    await provider.aclose()
    sent = double.bodies[1]["messages"][1]["content"][0]
    assert sent == {"type": "thinking", "thinking": "hm  \n", "signature": signature}
    assert again.text == "Noon."
