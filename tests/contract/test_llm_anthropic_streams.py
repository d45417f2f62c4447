"""Streams of the Messages API, each named after what it stands for, through the official SDK."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mira.errors import ProviderError, ProviderMalformed, ProviderOutage, ProviderRejected
from mira.llm.base import StopReason
from mira.messages.content import RedactedThinking, Text, Thinking, ToolResult, ToolUse
from tests.contract.llm_support import (
    CLAUDE,
    STREAMS,
    Heard,
    Server,
    ask,
    assistant,
    claude,
    hear,
    recorded,
    tool,
    user,
)

pytestmark = pytest.mark.anyio
SOURCE = f"anthropic:{CLAUDE}"
SIGNATURE = 'ErUBCkYIBBgCIkC8=+/=ü\\n"x"  EgwAAA=='


async def play(name: str) -> Heard:
    provider = claude(Server(recorded("anthropic", name)))
    try:
        return await hear(provider, ask())
    finally:
        await provider.aclose()


@pytest.mark.parametrize(
    ("name", "text", "stop"),
    [
        ("plain", "Good morning.", StopReason.END),
        ("empty_text_blocks", "Yes.", StopReason.END),
        ("text_in_start", "Hello", StopReason.END),
        ("unknown_parts", "Good morning.", StopReason.END),
        ("stop_unknown", "Good morning.", StopReason.OTHER),
        ("stop_missing", "Good morning.", StopReason.OTHER),
        ("stop_window", "Good mor", StopReason.MAX_TOKENS),
        ("usage_missing", "Good morning.", StopReason.END),
        ("usage_null", "Good morning.", StopReason.END),
    ],
)
async def test_words_arrive_whole_and_once(name: str, text: str, stop: StopReason) -> None:
    heard = await play(name)
    assert heard.text == text
    assert heard.finished.blocks == (Text(text=text),)
    assert heard.finished.stop is stop
    assert (heard.finished.provider, heard.finished.model) == ("anthropic", CLAUDE)


async def test_usage_is_what_the_provider_counted() -> None:
    heard = await play("plain")
    usage = heard.finished.usage
    assert (usage.input_tokens, usage.output_tokens) == (25, 15)
    assert (usage.cache_read_tokens, usage.cache_write_tokens) == (100, 7)
    assert usage.calls == 1
    assert usage.reported
    # Told as soon as it is known, for the books of a call that does not come to its end.
    assert heard.metered[0].usage.input_tokens == 25


@pytest.mark.parametrize("name", ["usage_missing", "usage_null"])
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
        ("arguments_in_start", {"city": "Wien"}),
        ("arguments_twice_encoded", {"city": "Wien"}),
        ("arguments_empty", {}),
        ("arguments_blank", {}),
    ],
)
async def test_arguments_of_a_call_are_an_object(name: str, arguments: dict[str, object]) -> None:
    heard = await play(name)
    assert heard.callings == [("toolu_01", "weather")]
    [use] = heard.uses
    assert (use.call_id, use.name) == ("toolu_01", "weather")
    assert json.loads(use.arguments) == arguments
    assert heard.finished.stop is StopReason.TOOL_USE


async def test_a_call_that_the_limit_cut_off_is_left_out() -> None:
    heard = await play("arguments_cut_by_limit")
    assert heard.finished.blocks == (Text(text="Let me look."),)
    assert heard.finished.stop is StopReason.MAX_TOKENS


async def test_a_refusal_may_be_wordless() -> None:
    heard = await play("refusal")
    assert heard.finished.stop is StopReason.REFUSAL
    assert heard.finished.blocks == ()


async def test_thinking_is_streamed_and_its_signature_kept_byte_for_byte() -> None:
    heard = await play("thinking_signed")
    assert heard.thinking == "First,\n think. "
    assert heard.finished.blocks[0] == Thinking(
        text="First,\n think. ", signature=SIGNATURE, source=SOURCE
    )


async def test_thinking_without_words_is_kept() -> None:
    heard = await play("thinking_hidden")
    assert heard.thinking == ""
    assert heard.finished.blocks[0] == Thinking(text="", signature="c2VhbGVk", source=SOURCE)


async def test_sealed_thinking_is_kept_byte_for_byte() -> None:
    heard = await play("thinking_redacted")
    data = "EmwKAhgBEgy3va3pzix/LafPsn4a=="
    assert heard.finished.blocks[0] == RedactedThinking(data=data, source=SOURCE)


@pytest.mark.parametrize("name", ["thinking_signed", "thinking_hidden", "thinking_redacted"])
async def test_thinking_goes_back_within_a_loop_of_tools_as_it_came(name: str) -> None:
    first = (await play(name)).finished.blocks[0]
    use = ToolUse(call_id="toolu_01", name="weather", arguments='{"city":"Wien"}')
    server = Server(recorded("anthropic", "plain"))
    provider = claude(server)
    result = ToolResult(call_id="toolu_01", text="Rain.")
    await hear(provider, ask(user("Well?"), assistant(first, use), tool(result)))
    await provider.aclose()
    sent = server.bodies[0]["messages"][1]["content"][0]
    wire = (STREAMS / "anthropic" / f"{name}.sse").read_text()
    if isinstance(first, Thinking):
        assert sent == {"type": "thinking", "thinking": first.text, "signature": first.signature}
    else:
        assert sent["type"] == "redacted_thinking"
        assert json.dumps(sent["data"]) in wire


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("error_overloaded", ProviderOutage),
        ("error_unknown", ProviderOutage),
        ("error_invalid", ProviderRejected),
        ("early_end", ProviderOutage),
        ("early_end_after_stop_reason", ProviderOutage),
        ("blank", ProviderMalformed),
        ("blank_words", ProviderMalformed),
        ("only_thinking", ProviderMalformed),
        ("arguments_broken", ProviderMalformed),
        ("arguments_not_an_object", ProviderMalformed),
        ("not_json", ProviderMalformed),
        ("parts_missing", ProviderMalformed),
    ],
)
async def test_a_stream_that_goes_wrong_says_how(name: str, error: type[ProviderError]) -> None:
    with pytest.raises(error) as raised:
        await play(name)
    assert type(raised.value) is error
    assert raised.value.provider == "anthropic"
    assert "secret" not in raised.value.detail
    assert "Wi" not in raised.value.detail


def test_every_recorded_stream_says_what_it_stands_for_and_is_used() -> None:
    tests = Path(__file__).read_text()
    for path in (STREAMS / "anthropic").iterdir():
        assert path.read_text().startswith(": "), path.name
        assert f'"{path.stem}"' in tests, path.name
