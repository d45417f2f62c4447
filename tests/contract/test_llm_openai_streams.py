"""Streams of chat completions, each named after what it stands for, through the official SDK."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mira.errors import ProviderError, ProviderMalformed, ProviderOutage
from mira.llm.base import StopReason
from mira.messages.content import Text, Thinking
from tests.contract.llm_support import GPT, STREAMS, Heard, Server, ask, gpt, hear, recorded

pytestmark = pytest.mark.anyio


async def play(name: str) -> Heard:
    provider = gpt(Server(recorded("openai", name)))
    try:
        return await hear(provider, ask())
    finally:
        await provider.aclose()


@pytest.mark.parametrize(
    ("name", "text", "stop"),
    [
        ("plain", "Good morning.", StopReason.END),
        ("usage_in_last_chunk", "Good morning.", StopReason.END),
        ("usage_running", "Good morning.", StopReason.END),
        ("usage_missing", "Good morning.", StopReason.END),
        ("usage_zero", "Good morning.", StopReason.END),
        ("keep_alive_comments", "Good morning.", StopReason.END),
        ("empty_deltas", "Yes.", StopReason.END),
        ("done_missing", "Good morning.", StopReason.END),
        ("finish_unknown", "Good morning.", StopReason.OTHER),
        ("finish_length", "Good mor", StopReason.MAX_TOKENS),
        ("refusal_words", "I cannot do that.", StopReason.REFUSAL),
    ],
)
async def test_words_arrive_whole_and_once(name: str, text: str, stop: StopReason) -> None:
    heard = await play(name)
    assert heard.text == text
    assert heard.finished.blocks == (Text(text=text),)
    assert heard.finished.stop is stop
    assert (heard.finished.provider, heard.finished.model) == ("openai", GPT)


@pytest.mark.parametrize("name", ["plain", "usage_in_last_chunk", "usage_running"])
async def test_usage_counts_cached_tokens_apart(name: str) -> None:
    usage = (await play(name)).finished.usage
    assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens) == (20, 100, 15)
    assert usage.reported


@pytest.mark.parametrize("name", ["usage_missing", "usage_zero"])
async def test_usage_that_was_not_reported_is_estimated_and_says_so(name: str) -> None:
    usage = (await play(name)).finished.usage
    assert not usage.reported
    assert usage.input_tokens > 0
    assert usage.output_tokens == 4


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("arguments_fragmented", {"city": "Wien", "days": 3}),
        ("arguments_whole", {"city": "Wien"}),
        ("arguments_twice_encoded", {"city": "Wien"}),
        ("id_repeated", {"city": "Wien"}),
        ("finish_stop_with_calls", {"city": "Wien"}),
        ("arguments_empty", {}),
        ("arguments_absent", {}),
        ("arguments_null", {}),
    ],
)
async def test_arguments_of_a_call_are_an_object(name: str, arguments: dict[str, object]) -> None:
    heard = await play(name)
    assert heard.callings == [("call_01", "weather")]
    [use] = heard.uses
    assert (use.call_id, use.name) == ("call_01", "weather")
    assert json.loads(use.arguments) == arguments
    assert heard.finished.stop is StopReason.TOOL_USE


@pytest.mark.parametrize(
    "name", ["calls_interleaved", "calls_without_index", "calls_all_index_zero", "calls_without_id"]
)
async def test_several_calls_are_kept_apart(name: str) -> None:
    heard = await play(name)
    first, second = heard.uses
    assert (first.name, json.loads(first.arguments)) == ("weather", {"city": "Wien"})
    assert (second.name, json.loads(second.arguments)) == ("clock", {"zone": "CET"})
    assert first.call_id
    assert second.call_id
    assert first.call_id != second.call_id
    assert heard.callings == [(first.call_id, "weather"), (second.call_id, "clock")]


async def test_a_call_that_the_limit_cut_off_is_left_out() -> None:
    heard = await play("arguments_cut_by_limit")
    assert heard.finished.blocks == (Text(text="Let me look."),)
    assert heard.finished.stop is StopReason.MAX_TOKENS


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "reasoning_in_both"])
async def test_reasoning_is_thinking_whatever_the_field_is_called(name: str) -> None:
    heard = await play(name)
    assert heard.thinking == "First, think."
    assert heard.finished.blocks == (
        Thinking(text="First, think.", source=f"openai:{GPT}"),
        Text(text="Done."),
    )


async def test_an_answer_held_back_is_a_refusal() -> None:
    heard = await play("content_filter")
    assert heard.finished.stop is StopReason.REFUSAL
    assert heard.finished.blocks == ()


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("error_in_stream", ProviderOutage),
        ("error_as_text", ProviderOutage),
        ("finish_error", ProviderOutage),
        ("early_end", ProviderOutage),
        ("early_done", ProviderOutage),
        ("blank", ProviderMalformed),
        ("arguments_broken", ProviderMalformed),
        ("not_json", ProviderMalformed),
    ],
)
async def test_a_stream_that_goes_wrong_says_how(name: str, error: type[ProviderError]) -> None:
    with pytest.raises(error) as raised:
        await play(name)
    assert type(raised.value) is error
    assert raised.value.provider == "openai"
    assert "secret" not in raised.value.detail
    assert "Wi" not in raised.value.detail


def test_every_recorded_stream_says_what_it_stands_for_and_is_used() -> None:
    tests = Path(__file__).read_text()
    for path in (STREAMS / "openai").iterdir():
        assert path.read_text().startswith(": "), path.name
        assert f'"{path.stem}"' in tests, path.name
