"""The provider double itself: what it is told, what it stamps, how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from bench.provider_double import ProviderDouble
from bench.provider_script import Behaviour, Call, load
from mira.messages.content import Text
from tests.contract.llm_support import CLAUDE, ask, assistant, claude_at, gpt_at, hear, user

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]

CLAUDE_ASKS = {
    "model": CLAUDE,
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Hi [#turn-7]"}],
}


@pytest.fixture
async def double() -> AsyncIterator[ProviderDouble]:
    async with ProviderDouble() as started:
        yield started


@pytest.fixture
async def http(double: ProviderDouble) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=double.url, verify=False) as client:
        yield client


async def test_a_script_is_posted_and_says_what_is_wrong_with_it(
    double: ProviderDouble, http: httpx2.AsyncClient
) -> None:
    done = await http.post("/_script", json={"default": {"text": "Posted."}})
    assert done.status_code == 200
    provider = claude_at(double)
    assert (await hear(provider, ask())).text == "Posted."
    wrong = await http.post("/_script", json={"default": {"txet": "?"}})
    assert wrong.status_code == 422
    assert "txet" in wrong.json()["error"]
    assert (await hear(provider, ask())).text == "Posted."
    await provider.aclose()


async def test_rules_go_before_the_queue_and_the_queue_before_the_default(
    double: ProviderDouble,
) -> None:
    double.script = load(
        json.dumps(
            {
                "default": {"text": "default"},
                "queue": [{"text": "queue 1", "times": 2}, {"text": "queue 2"}],
                "rules": [{"contains": "rule", "text": "ruled", "times": 1}],
            }
        )
    )
    provider = gpt_at(double)
    said = [(await hear(provider, ask(user(t)))).text for t in ("a", "rule", "rule", "b", "c", "d")]
    assert said == ["queue 1", "ruled", "queue 1", "queue 2", "default", "default"]
    await provider.aclose()


async def test_stamps_tell_when_a_request_came_and_its_first_word_went(
    double: ProviderDouble, http: httpx2.AsyncClient
) -> None:
    double.script.default = Behaviour(first_token_ms=50, tokens=5, token_ms=10)
    provider = claude_at(double)
    before = time.monotonic()
    await hear(provider, ask(user("Hi [#turn-7]")))
    after = time.monotonic()
    [stamp] = (await http.get("/_stamps")).json()
    assert stamp["marker"] == "turn-7"
    assert stamp["outcome"] == "complete"
    assert before <= stamp["received"] <= stamp["first_byte"] <= stamp["done"] <= after
    assert stamp["first_byte"] - stamp["received"] >= 0.045
    assert stamp["done"] - stamp["received"] >= 0.085
    await http.delete("/_stamps")
    assert (await http.get("/_stamps")).json() == []
    await provider.aclose()


async def test_requests_can_be_read_back_but_for_keys(
    double: ProviderDouble, http: httpx2.AsyncClient
) -> None:
    await http.post("/v1/messages", json=CLAUDE_ASKS, headers={"x-api-key": "sk-secret"})
    [request] = (await http.get("/_requests")).json()
    assert request["protocol"] == "anthropic"
    assert request["body"] == CLAUDE_ASKS
    assert "sk-secret" not in json.dumps(request)
    state = (await http.get("/_state")).json()
    assert state == {"open": 0, "served": 1, "connections": 1}


async def test_answers_that_are_not_streamed_come_in_one_document(
    double: ProviderDouble, http: httpx2.AsyncClient
) -> None:
    tools = (Call("weather", {"city": "Wien"}), Call("clock", mode="empty"))
    double.script.default = Behaviour(text="Look:", thinking="hm", tools=tools)
    claude = (await http.post("/v1/messages", json=CLAUDE_ASKS)).json()
    assert [block["type"] for block in claude["content"]] == [
        "thinking",
        "text",
        "tool_use",
        "tool_use",
    ]
    assert claude["content"][2]["input"] == {"city": "Wien"}
    assert claude["content"][3]["input"] == {}
    assert claude["stop_reason"] == "tool_use"
    gpt = (await http.post("/v1/chat/completions", json={**CLAUDE_ASKS, "model": "m"})).json()
    [choice] = gpt["choices"]
    assert choice["message"]["content"] == "Look:"
    assert choice["message"]["tool_calls"][0]["function"]["arguments"] == '{"city":"Wien"}'
    assert choice["finish_reason"] == "tool_calls"


async def test_tools_are_asked_for_once_and_their_results_answered_in_words(
    double: ProviderDouble, http: httpx2.AsyncClient
) -> None:
    double.script.default = Behaviour(text="Rain.", tools=(Call("weather"),))
    result = {"type": "tool_result", "tool_use_id": "t", "content": "Rain."}
    body: dict[str, Any] = {
        **CLAUDE_ASKS,
        "messages": [*CLAUDE_ASKS["messages"], {"role": "user", "content": [result]}],  # type: ignore[misc]
    }
    answer = (await http.post("/v1/messages", json=body)).json()
    assert answer["stop_reason"] == "end_turn"


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/v1/nowhere", None, 404),
        ("POST", "/v1/messages", b"not json", 400),
        ("POST", "/v1/messages", b"{}", 400),
        ("POST", "/v1/chat/completions", b'{"messages": 7}', 400),
        ("POST", "/_script", b"[]", 422),
    ],
)
async def test_nonsense_gets_a_clear_answer(
    http: httpx2.AsyncClient, method: str, path: str, body: bytes | None, status: int
) -> None:
    assert (await http.request(method, path, content=body)).status_code == status


async def test_what_was_marked_is_read_from_the_cache_by_the_next_request(
    double: ProviderDouble,
) -> None:
    provider = claude_at(double)
    system = "You are an assistant with many rules. " * 50
    turns = [user("One."), assistant(Text(text="Two.")), user("Three.")]
    first = (await hear(provider, ask(*turns, system=system, cache_marks=(2,)))).finished.usage
    assert first.cache_read_tokens == 0
    assert first.cache_write_tokens > 400
    longer = [*turns, assistant(Text(text="Four.")), user("Five.")]
    second = (await hear(provider, ask(*longer, system=system, cache_marks=(4,)))).finished.usage
    assert second.cache_read_tokens == first.cache_write_tokens
    assert 0 < second.cache_write_tokens < 100
    changed = (await hear(provider, ask(*longer, system=system + "!"))).finished.usage
    assert changed.cache_read_tokens == 0
    await provider.aclose()


async def test_a_connection_serves_one_request_after_another(
    double: ProviderDouble, http: httpx2.AsyncClient
) -> None:
    for _ in range(5):
        await http.post("/v1/messages", json=CLAUDE_ASKS)
    assert len(double.connections) == 1


async def test_as_a_process_it_tells_its_address_and_ends_with_its_parents_pipe() -> None:
    process = await anyio.open_process(
        [sys.executable, "-m", "bench.provider_double", "--tokens", "3", "--first-token-ms", "5"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    async with process:
        assert process.stdout is not None
        assert process.stdin is not None
        url = json.loads(await process.stdout.receive())["url"]
        async with httpx2.AsyncClient(base_url=url, verify=False) as client:
            models = (await client.get("/v1/models")).json()
            answer = (await client.post("/v1/messages", json=CLAUDE_ASKS)).json()
        assert models["data"][0]["id"] == "double-1"
        assert answer["content"][0]["text"] == "word0 word1 word2"
        await process.stdin.aclose()
        with anyio.fail_after(20):
            assert await process.wait() == 0
