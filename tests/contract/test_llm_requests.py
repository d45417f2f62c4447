"""What is sent: our request in the words of each provider, and what had to be left out."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from mira.errors import ProviderRejected
from mira.llm.base import Effort, SystemBlock
from mira.messages.content import (
    RedactedThinking,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from tests.contract.llm_support import (
    CLAUDE,
    GPT,
    WEATHER,
    Heard,
    Server,
    ask,
    assistant,
    claude,
    gpt,
    hear,
    recorded,
    refusal,
    to_claude,
    to_gpt,
    tool,
    user,
)

pytestmark = pytest.mark.anyio

USE = ToolUse(call_id="call_1", name="weather", arguments='{"city":"Wien"}')
RESULT = ToolResult(call_id="call_1", text="Rain.")
MINE = f"anthropic:{CLAUDE}"


# Anthropic.


async def test_claude_gets_messages_tools_and_effort() -> None:
    body = await to_claude(
        user("Weather?"),
        assistant(Text(text="Let me look."), USE),
        tool(RESULT, ToolResult(call_id="call_2", text="No such place.", is_error=True)),
        user("And now?"),
        tools=(WEATHER,),
        effort=Effort.LOW,
        max_output_tokens=777,
    )
    assert body["stream"] is True
    assert body["max_tokens"] == 777
    assert body["output_config"] == {"effort": "low"}
    assert body["tools"] == [
        {
            "name": "weather",
            "description": WEATHER.description,
            "input_schema": json.loads(WEATHER.parameters),
        }
    ]
    assert [m["role"] for m in body["messages"]] == ["user", "assistant", "user"]
    assert body["messages"][1]["content"] == [
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Wien"}},
    ]
    results = body["messages"][2]["content"]
    assert [b["type"] for b in results] == ["tool_result", "tool_result", "text"]
    assert results[0]["content"] == [{"type": "text", "text": "Rain."}]
    assert "is_error" not in results[0]
    assert results[1]["is_error"] is True


async def test_blank_blocks_are_not_sent_to_claude() -> None:
    body = await to_claude(
        user("Hi", "  "), assistant(Text(text="\n")), user("Still there?"), system="  "
    )
    assert "system" not in body
    assert body["messages"] == [
        {
            "role": "user",
            "content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": "Still there?"}],
        }
    ]


async def test_cache_marks_stand_at_the_end_of_system_blocks_and_of_the_stable_messages() -> None:
    body = await to_claude(
        user("One."),
        assistant(Text(text="Two.")),
        user("Three."),
        cache_marks=(2,),
    )
    assert body["system"][-1]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    marked = [
        (m, b)
        for m, message in enumerate(body["messages"])
        for b, block in enumerate(message["content"])
        if "cache_control" in block
    ]
    assert marked == [(1, 0)]
    assert body["messages"][1]["content"][0]["cache_control"] == {"type": "ephemeral"}


async def test_each_mark_stands_at_the_end_of_what_is_before_it() -> None:
    said = (user("Boundary."), user("One."), assistant(Text(text="Two.")), user("Three."))
    body = await to_claude(*said, cache_marks=(1, 3))
    marked = [
        block["text"]
        for message in body["messages"]
        for block in message["content"]
        if "cache_control" in block
    ]
    assert marked == ["Boundary.", "Two."]


async def test_of_too_many_marks_the_last_ones_are_set() -> None:
    turns = [one for n in range(5) for one in (user(f"{n}?"), assistant(Text(text=f"{n}!")))]
    body = await to_claude(*turns, user("Now?"), cache_marks=(2, 4, 6, 8, 10))
    marked = [
        block["text"]
        for message in body["messages"]
        for block in message["content"]
        if "cache_control" in block
    ]
    assert marked == ["2!", "3!", "4!"]
    assert body["system"][-1]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}


async def test_a_mark_falls_into_the_middle_of_messages_that_are_joined() -> None:
    body = await to_claude(tool(RESULT), user("Next."), cache_marks=(1,), system="")
    content = body["messages"][0]["content"]
    assert ["cache_control" in block for block in content] == [True, False]


async def test_never_more_marks_than_the_provider_takes() -> None:
    system = tuple(SystemBlock(text=f"Part {n}.", cache=True) for n in range(7))
    server = Server(recorded("anthropic", "plain"))
    provider = claude(server)
    request = ask(user("One."), assistant(Text(text="Two.")), user("Three."), cache_marks=(2,))
    await hear(provider, msgspec.structs.replace(request, system=system))
    await provider.aclose()
    body = server.bodies[0]
    kept = [n for n, block in enumerate(body["system"]) if "cache_control" in block]
    assert kept == [0, 5, 6]
    ttls = [body["system"][n]["cache_control"].get("ttl") for n in kept]
    assert ttls == ["1h", None, None]


async def test_thinking_goes_back_only_to_the_model_it_came_from() -> None:
    blocks = (
        Thinking(text="mine", signature="c2ln", source=MINE),
        Thinking(text="another's", signature="c2ln", source="anthropic:claude-opus-5-5"),
        RedactedThinking(data="c2Vh", source="anthropic:claude-opus-5-5"),
        Thinking(text="unsigned", source=MINE),
        USE,
    )
    body = await to_claude(user("Hi."), assistant(*blocks), tool(RESULT))
    kinds = [b["type"] for b in body["messages"][1]["content"]]
    assert kinds == ["thinking", "tool_use"]
    assert body["messages"][1]["content"][0]["thinking"] == "mine"


async def test_thinking_of_earlier_turns_stays_away() -> None:
    old = Thinking(text="old", signature="c2ln", source=MINE)
    new = Thinking(text="new", signature="c2ln", source=MINE)
    body = await to_claude(
        user("Hi."),
        assistant(old, Text(text="Hello.")),
        user("Weather?"),
        assistant(new, USE),
        tool(RESULT),
    )
    sent = [b for m in body["messages"] for b in m["content"] if b["type"] == "thinking"]
    assert [b["thinking"] for b in sent] == ["new"]


@pytest.mark.parametrize(
    ("model", "asked", "thinking"),
    [
        (CLAUDE, True, {"type": "adaptive", "display": "summarized"}),
        (CLAUDE, False, {"type": "adaptive", "display": "summarized"}),
        ("claude-opus-4-7", True, {"type": "adaptive", "display": "summarized"}),
        ("claude-opus-4-7", False, None),
        ("claude-haiku-4-5", True, {"type": "enabled", "budget_tokens": 4096}),
        ("claude-haiku-4-5", False, None),
        ("somebody-elses", True, {"type": "enabled", "budget_tokens": 4096}),
    ],
)
async def test_each_model_is_asked_to_think_in_its_own_way(
    model: str, asked: bool, thinking: dict[str, Any] | None
) -> None:
    body = await to_claude(model=model, thinking=asked, max_output_tokens=1000)
    assert body.get("thinking") == thinking
    budget = (thinking or {}).get("budget_tokens", 0)
    assert body["max_tokens"] == 1000 + budget


async def test_thinking_that_was_not_asked_for_is_not_shown() -> None:
    provider = claude(Server(recorded("anthropic", "thinking_signed")))
    heard = await hear(provider, ask(thinking=False))
    await provider.aclose()
    assert heard.thinking == ""
    assert isinstance(heard.finished.blocks[0], Thinking)


async def test_thinking_whose_signature_is_refused_is_left_out_and_noted() -> None:
    error = {"type": "invalid_request_error", "message": "Invalid `signature` in `thinking` block"}
    server = Server(refusal(400, {"error": error}), recorded("anthropic", "plain"))
    provider = claude(server)
    thought = Thinking(text="mine", signature="c2ln", source=MINE)
    heard = await hear(provider, ask(user("Hi."), assistant(thought, USE), tool(RESULT)))
    await provider.aclose()
    assert heard.text == "Good morning."
    assert heard.dropped == ["earlier thinking"]
    kinds = [[b["type"] for b in m["content"]] for m in server.bodies[1]["messages"]]
    assert kinds == [["text"], ["tool_use"], ["tool_result"]]


async def test_a_refusal_of_something_else_is_not_asked_again() -> None:
    error = {"type": "invalid_request_error", "message": "tools.0: bad schema"}
    server = Server(refusal(400, {"error": error}))
    provider = claude(server)
    thought = Thinking(text="mine", signature="c2ln", source=MINE)
    with pytest.raises(ProviderRejected):
        await hear(provider, ask(user("Hi."), assistant(thought, USE), tool(RESULT)))
    await provider.aclose()
    assert len(server.bodies) == 1


async def test_ids_of_another_provider_fit_into_claudes_letters() -> None:
    use = ToolUse(call_id="functions.weather:0", name="weather")
    result = ToolResult(call_id="functions.weather:0", text="Rain.")
    body = await to_claude(user("Hi."), assistant(use), tool(result))
    sent = body["messages"][1]["content"][0]["id"]
    assert sent == "functions_weather_0"
    assert body["messages"][2]["content"][0]["tool_use_id"] == sent


# OpenAI.


async def test_gpt_gets_one_system_message_tools_results_and_a_limit() -> None:
    body = await to_gpt(
        user("The present: Monday.", "Weather?"),
        assistant(Text(text="Let me look."), USE),
        tool(RESULT, ToolResult(call_id="call_2", text="No such place.", is_error=True)),
        tools=(WEATHER,),
        effort=Effort.HIGH,
        max_output_tokens=777,
    )
    assert body["stream_options"] == {"include_usage": True}
    assert body["max_completion_tokens"] == 777
    assert body["reasoning_effort"] == "high"
    assert body["tools"][0]["function"]["parameters"] == json.loads(WEATHER.parameters)
    system, said, called, result, failure = body["messages"]
    assert system == {"role": "system", "content": "Be brief."}
    assert said == {"role": "user", "content": "The present: Monday.\n\nWeather?"}
    assert called["content"] == "Let me look."
    assert called["tool_calls"][0]["function"] == {
        "name": "weather",
        "arguments": '{"city":"Wien"}',
    }
    assert result == {"role": "tool", "tool_call_id": "call_1", "content": "Rain."}
    assert failure["content"] == "Error: No such place."


async def test_neighbouring_user_messages_become_one_for_gpt() -> None:
    body = await to_gpt(user("One."), assistant(Text(text=" ")), user("Two."), system="")
    assert body["messages"] == [{"role": "user", "content": "One.\n\nTwo."}]


async def test_reasoning_goes_back_only_within_the_loop_of_tools() -> None:
    mine = Thinking(text="mine", source=f"openai:{GPT}")
    old = assistant(mine, Text(text="Hello."))
    body = await to_gpt(user("Hi."), old, user("Weather?"), assistant(mine, USE), tool(RESULT))
    sent = [m.get("reasoning_content") for m in body["messages"] if m["role"] == "assistant"]
    assert sent == [None, "mine"]


async def test_other_endpoints_get_the_limit_under_its_old_name() -> None:
    body = await to_gpt(base_url="http://127.0.0.1:11434", max_output_tokens=50)
    assert body["max_tokens"] == 50
    assert "max_completion_tokens" not in body


async def _refused(message: str, param: str | None, **fields: Any) -> tuple[Server, Heard]:
    """Two answers after a first one was refused with these words."""
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": None}
    server = Server(
        refusal(400, {"error": error}), recorded("openai", "plain"), recorded("openai", "plain")
    )
    provider = gpt(server)
    heard = await hear(provider, ask(**fields))
    await hear(provider, ask(**fields))
    await provider.aclose()
    return server, heard


async def test_reasoning_is_switched_off_where_it_excludes_tools_and_this_is_noted() -> None:
    server, heard = await _refused(
        "Function tools with reasoning_effort are not supported. Set it to 'none'.",
        "reasoning_effort",
        tools=(WEATHER,),
        effort=Effort.HIGH,
    )
    assert heard.dropped == ["effort"]
    efforts = [body["reasoning_effort"] for body in server.bodies]
    assert efforts == ["high", "none", "none"]  # learned once


async def test_an_unknown_parameter_is_left_out_from_then_on() -> None:
    server, heard = await _refused("Unknown parameter: stream_options", None)
    assert ["stream_options" in body for body in server.bodies] == [True, False, False]
    assert heard.text == "Good morning."


async def test_effort_is_dropped_where_it_is_unknown() -> None:
    server, heard = await _refused("Unsupported parameter", "reasoning_effort", effort=Effort.LOW)
    assert heard.dropped == ["effort"]
    assert ["reasoning_effort" in body for body in server.bodies] == [True, False, False]


async def test_a_refused_limit_goes_under_its_other_name() -> None:
    server, _ = await _refused("Use max_tokens, not max_completion_tokens", None)
    assert ["max_tokens" in body for body in server.bodies] == [False, True, True]


# Both.


@pytest.mark.parametrize("send", [to_claude, to_gpt])
async def test_lone_surrogates_do_not_stop_a_request(send: Any) -> None:
    use = ToolUse(call_id="call_1", name="weather", arguments='{"city":"\\ud800"}')
    result = ToolResult(call_id="call_1", text="\udfff")
    body = await send(user("a\ud800b"), assistant(use), tool(result))
    assert "a\N{REPLACEMENT CHARACTER}b" in json.dumps(body, ensure_ascii=False)


@pytest.mark.parametrize("send", [to_claude, to_gpt])
async def test_the_next_request_extends_the_last_byte_for_byte(send: Any) -> None:
    history = [user("One."), assistant(Text(text="Two.")), user("Three.")]
    longer = [*history, assistant(Text(text="Four.")), user("Five.")]
    first = (await send(*history))["messages"]
    second = (await send(*longer))["messages"]
    assert json.dumps(second[: len(first)]) == json.dumps(first)


def test_roles_of_the_house_are_the_three_that_are_translated() -> None:
    assert {role.value for role in Role} == {"user", "assistant", "tool"}
