"""What a tool answered at length: shown to the model in part, kept and readable whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mira.prompt.bounds import RESULT
from tests.conftest import Server
from tests.support.web import http, problem

#: No two lines are alike, so that a part in the wrong place is found out.
LONG = "".join(f"line {n:06d} ünïcode\n" for n in range(6_000))[:100_000]
CALL = "call-1"


def asked(server: Server) -> tuple[dict[str, Any], dict[str, Any]]:
    """A turn whose model reads the long file; the message with the result, and the prompt that
    the model was shown after it."""
    effects = Path(server.process.extra["MIRA_TEST_EFFECTS"])
    effects.write_text(LONG)
    try:
        server.double.script(
            {"default": {"text": "Read.", "tools": [{"name": "read", "id": CALL}]}}
        )
        with http(server.url, server.key) as client:
            reply = client.post("/v1/chat", json={"message": "Read it to me."})
            assert reply.status_code == 200, reply.text
            messages = client.get("/v1/messages").json()["messages"]
    finally:
        effects.unlink()
    (message,) = [one for one in messages if one["role"] == "tool"]
    prompt = [one for one in server.double.requests() if "tool_result" in json.dumps(one)][-1]
    return message, prompt


def shown(prompt: dict[str, Any]) -> str:
    """The result as it stands in a prompt."""
    (text,) = [
        block["content"] if isinstance(block["content"], str) else block["content"][0]["text"]
        for message in prompt["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    return str(text)


def parts(client: httpx2.Client, address: str, limit: int) -> list[dict[str, Any]]:
    found, offset = [], 0
    while True:
        answer = client.get(address, params={"offset": offset, "limit": limit})
        assert answer.status_code == 200, answer.text
        found.append(answer.json())
        if found[-1]["next_offset"] is None:
            return found
        assert found[-1]["next_offset"] > offset
        offset = found[-1]["next_offset"]


@pytest.mark.parametrize("limit", [7_777, 50_000, 100_000, 200_000])
def test_a_result_of_a_hundred_thousand_characters_is_cut_in_the_prompt_and_readable_whole(
    server: Server, limit: int
) -> None:
    message, prompt = asked(server)
    assert len(LONG) == 100_000
    cut = shown(prompt)
    assert len(cut) <= RESULT
    assert "characters left out here; the whole result is kept" in cut
    with http(server.url, server.read_key) as client:
        (block,) = client.get(f"/v1/messages/{message['id']}").json()["blocks"]
        assert (block["call_id"], block["text"]) == (CALL, LONG)
        found = parts(client, f"/v1/messages/{message['id']}/results/{CALL}", limit)
    assert "".join(one["text"] for one in found) == LONG
    assert {one["characters"] for one in found} == {len(LONG)}
    assert all(len(one["text"]) == limit for one in found[:-1])


def test_beyond_its_end_a_result_is_empty_and_what_is_no_result_is_not_there(
    server: Server,
) -> None:
    message, _ = asked(server)
    address = f"/v1/messages/{message['id']}/results"
    with http(server.url, server.key) as client:
        beyond = client.get(f"{address}/{CALL}?offset=100000").json()
        assert (beyond["text"], beyond["next_offset"]) == ("", None)
        problem(client.get(f"{address}/another"), 404, "not_found")
        problem(client.get(f"{address}/{CALL}?offset=-1"), 422, "validation_error")
    with http(server.url, server.neighbour().key) as client:
        problem(client.get(f"{address}/{CALL}"), 404, "not_found")
