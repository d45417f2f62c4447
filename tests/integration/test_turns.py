"""Turns as their user sees them: over WebSocket, on the real server, against both protocols."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.conftest import Server
from tests.support.client import CLOSING, Client, spoken
from tests.support.processes import Person

SLOW: dict[str, Any] = {"text": " ".join(f"word{n}" for n in range(40)), "token_ms": 50}
TOOL_CLOSING = ("complete", "cancelled", "interrupted")


def _get(server: Server, path: str) -> Any:
    answer = httpx2.get(
        server.url + path, headers={"Authorization": f"Bearer {server.key}"}, timeout=30
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


def _history(server: Server) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _get(server, "/v1/messages?limit=100")["messages"][::-1]
    return found


def _blocks(server: Server, kind: str) -> list[dict[str, Any]]:
    return [b for m in _history(server) for b in m["blocks"] if b["type"] == kind]


@pytest.fixture
def effects(server: Server) -> Path:
    path = Path(server.process.extra["MIRA_TEST_EFFECTS"])
    path.unlink(missing_ok=True)
    return path


def test_the_reply_streams_in_order_and_complete_carries_it_whole(server: Server) -> None:
    server.double.script({"default": {**SLOW, "token_ms": 5}})
    with Client(server.ws_url, server.key) as client:
        accepted = client.say("tell me", "r")
        frames = client.until("complete")
    assert spoken(frames) == SLOW["text"] == frames[-1]["reply"]
    numbers = [f["seq"] for f in frames]
    assert numbers == sorted(set(numbers))
    assert {f["turn_id"] for f in frames} == {accepted["turn_id"]}
    assert frames[-1]["usage"]["output_tokens"] > 0
    timings = frames[-1]["timings"]
    stages = ["started_ms", "composed_ms", "first_text_ms", "streamed_ms", "committed_ms"]
    assert [timings[s] for s in stages] == sorted(timings[s] for s in stages)


def test_messages_sent_during_a_turn_are_queued_and_answered_one_by_one(server: Server) -> None:
    with Client(server.ws_url, server.key) as client:
        for n in range(5):
            client.send("message", request_id=f"r{n}", content=f"message {n}")
        replies: list[str] = []
        while len(replies) < 5:
            replies.append(client.until("complete")[-1]["reply"])
    assert replies == [f"message {n}" for n in range(5)]


def test_fifty_racing_sends_are_fifty_ordered_turns_one_at_a_time(server: Server) -> None:
    def send(n: int) -> None:
        answer = httpx2.post(
            f"{server.url}/v1/chat",
            headers={"Authorization": f"Bearer {server.key}"},
            json={"message": f"message {n}", "request_id": f"r{n}"},
            timeout=120,
        )
        assert answer.json()["reply"] == f"message {n}"

    _at_once([lambda n=n: send(n) for n in range(50)])  # type: ignore[misc]
    history = _history(server)
    assert [m["role"] for m in history] == ["user", "assistant"] * 50
    pairs = list(zip(history[::2], history[1::2], strict=True))
    assert all(a["blocks"] == b["blocks"] for a, b in pairs)
    rows = server.rows(
        "select seq, started_at, finished_at from turns where user_id = $1 order by seq",
        server.person.id,
    )
    assert [r["seq"] for r in rows] == list(range(1, 51))
    for before, after in pairwise(rows):
        assert after["started_at"] >= before["finished_at"]


def test_cancelling_stops_the_provider_and_keeps_the_partial_text_marked(server: Server) -> None:
    server.double.script({"default": SLOW})
    with Client(server.ws_url, server.key) as client:
        turn_id = client.say("a long story", "r")["turn_id"]
        seen = client.until("text")
        client.send("cancel", turn_id=turn_id)
        frames = seen + client.until(*CLOSING)
        assert frames[-1]["type"] == "cancelled"
        assert frames[-1]["text"] == spoken(frames)
        assert SLOW["text"].startswith(frames[-1]["text"])
        assert len(frames[-1]["text"]) < len(SLOW["text"])
        kept = _history(server)[-1]
        assert (kept["role"], kept["state"]) == ("assistant", "cancelled")
        assert kept["blocks"][0]["text"] == frames[-1]["text"]
        # It stays in prompts, marked, and the thread goes on.
        server.double.script({"default": {"echo": True}})
        assert client.ask("go on", "r2") == "go on"
    sent = server.double.requests()[-1]["messages"]
    assert "[stopped here]" in json.dumps(sent[1])
    assert server.double.stamps()[-2]["outcome"] == "aborted"
    # The call that was cut short is in the books too.
    rows = server.rows(
        "select count(*) as n from model_calls where user_id = $1 and purpose = 'conversation'",
        server.person.id,
    )
    assert rows == [{"n": 2}]


def test_a_cancelled_turn_can_be_tried_again_and_the_new_attempt_replaces_the_old(
    server: Server,
) -> None:
    server.double.script({"default": SLOW})
    with Client(server.ws_url, server.key) as client:
        turn_id = client.say("a story", "r")["turn_id"]
        client.until("text")
        client.send("cancel", turn_id=turn_id)
        client.until("cancelled")
        server.double.script({"default": {"text": "A short story."}})
        client.send("retry", turn_id=turn_id)
        frames = client.until("complete")
    assert frames[-1]["attempt"] == 2
    assert [m["blocks"][0]["text"] for m in _history(server)] == ["a story", "A short story."]


def test_cancelling_a_waiting_turn_skips_it_and_leaves_the_running_one_alone(
    server: Server,
) -> None:
    server.double.script({"default": {**SLOW, "token_ms": 20}})
    with Client(server.ws_url, server.key) as client:
        first = client.say("first", "r1")["turn_id"]
        second = client.say("second", "r2")["turn_id"]
        client.send("cancel", turn_id=second)
        ends = [client.until(*CLOSING)[-1] for _ in range(2)]
    assert [(e["type"], e["turn_id"]) for e in ends] == [("complete", first), ("cancelled", second)]


def test_two_clients_of_a_user_see_the_same_turn_whoever_began_it(server: Server) -> None:
    server.double.script({"default": {**SLOW, "token_ms": 10}})
    with Client(server.ws_url, server.key) as one, Client(server.ws_url, server.key) as two:
        turn_id = one.say("hello both", "r")["turn_id"]
        announced = two.until("turn")[-1]
        assert (announced["turn_id"], announced["content"]) == (turn_id, "hello both")
        mine, yours = one.until("complete"), two.until("complete")
    assert spoken(mine) == spoken(yours) == SLOW["text"]


def test_a_client_that_was_away_resumes_without_gap_or_repeat(server: Server) -> None:
    server.double.script({"default": SLOW})
    with Client(server.ws_url, server.key) as client:
        turn_id = client.say("hello", "r")["turn_id"]
        before = client.until("text")
    with Client(server.ws_url, server.key) as client:
        assert client.ready["active_turn"]["turn_id"] == turn_id
        client.send("resume", turn_id=turn_id, after=before[-1]["seq"])
        after = client.until("complete")
    assert spoken(before + after) == SLOW["text"]
    numbers = [f["seq"] for f in before + after if f["type"] == "text"]
    assert numbers == sorted(set(numbers))


def test_thinking_reaches_only_who_asked_and_goes_back_to_its_model_unchanged(
    server: Server,
) -> None:
    thinking = {"thinking": "let me see", "signature": "c2ln+/=="}
    calling = {"text": "", "tools": [{"name": "read", "arguments": {}}], **thinking}
    server.double.script({"queue": [calling], "default": {"text": "Done.", **thinking}})
    with Client(server.ws_url, server.key) as client:
        client.say("quiet", "r1")
        assert "thinking" not in {f["type"] for f in client.until("complete")}
        client.send("message", request_id="r2", content="loud", include_thinking=True)
        frames = client.until("complete")
    assert "".join(f["text"] for f in frames if f["type"] == "thinking") == "let me see"
    # Within a loop of tools the reasoning goes back as it came, byte for byte.
    sent = server.double.requests()[1]["messages"][1]["content"]
    assert sent[0] == {"type": "thinking", "thinking": "let me see", "signature": "c2ln+/=="}


def test_a_tool_call_is_made_once_and_its_result_answered(server: Server, effects: Path) -> None:
    call = {"name": "note", "arguments": {"text": "milk"}}
    server.double.script({"queue": [{"text": "", "tools": [call]}], "default": {"text": "Noted."}})
    with Client(server.ws_url, server.key) as client:
        client.say("note milk", "r")
        frames = client.until("complete")
    assert frames[-1]["tools_used"] == ["note"]
    assert [f["phase"] for f in frames if f["type"] == "tool"] == ["called", "running", "done"]
    assert effects.read_text() == "note: milk\n"
    [use], [result] = _blocks(server, "tool_use"), _blocks(server, "tool_result")
    assert use["call_id"] == result["call_id"]
    assert result["text"] == "note done: milk"
    [row] = server.rows("select state, tool from effects where user_id = $1", server.person.id)
    assert row == {"state": "done", "tool": "note"}
    # What the turn did is part of the next prompt.
    with Client(server.ws_url, server.key) as client:
        client.ask("thanks", "r2")
    kinds = [b["type"] for m in server.double.requests()[-1]["messages"] for b in m["content"]]
    assert kinds.count("tool_use") == kinds.count("tool_result") == 1


@pytest.mark.parametrize(
    "arguments",
    ["not json", "[1]", '{"text": "a\\u0000b"}', ""],
    ids=["text", "list", "nul", "none"],
)
def test_arguments_that_cannot_be_used_change_nothing_and_leave_the_thread_usable(
    server: Server, effects: Path, arguments: str
) -> None:
    call = {"name": "note", "arguments": arguments, "mode": "whole" if arguments else "empty"}
    server.double.script({"queue": [{"text": "", "tools": [call]}], "default": {"text": "I see."}})
    with Client(server.ws_url, server.key) as client:
        client.say("note", "r")
        assert client.until(*TOOL_CLOSING)[-1]["reply"] == "I see."
        # Whatever came of it, the thread is usable.
        assert client.ask("next", "r2") == "I see."
    if arguments:
        assert not effects.exists()
    assert all(r["is_error"] for r in _blocks(server, "tool_result") if arguments)


def test_a_call_that_goes_round_in_circles_is_ended_and_the_model_answers(
    server: Server,
) -> None:
    call = {"name": "read", "arguments": {}}
    server.double.script(
        {
            "queue": [{"text": "", "tools": [call], "tools_again": True, "times": 2}],
            "default": {"text": "Enough."},
        }
    )
    with Client(server.ws_url, server.key) as client:
        client.say("read", "r")
        assert client.until("complete")[-1]["reply"] == "Enough."
    assert "tools" not in server.double.requests()[-1] or not server.double.requests()[-1]["tools"]


def test_an_unknown_tool_is_answered_with_those_that_exist(server: Server) -> None:
    server.double.script(
        {
            "queue": [{"text": "", "tools": [{"name": "fly", "arguments": {}}]}],
            "default": {"text": "I cannot."},
        }
    )
    with Client(server.ws_url, server.key) as client:
        client.say("fly", "r")
        assert client.until("complete")[-1]["reply"] == "I cannot."
    [result] = _blocks(server, "tool_result")
    assert "note, read, send" in result["text"]


def test_cancelling_between_call_and_result_leaves_every_call_answered(server: Server) -> None:
    calls = [{"name": "read", "arguments": {}}, {"name": "read", "arguments": {"n": 2}}]
    server.double.script(
        {"queue": [{"text": "", "tools": calls}], "default": {**SLOW, "first_token_ms": 3000}}
    )
    with Client(server.ws_url, server.key) as client:
        turn_id = client.say("read twice", "r")["turn_id"]
        seen = client.until("tool")
        client.send("cancel", turn_id=turn_id)
        assert (seen + client.until(*CLOSING))[-1]["type"] == "cancelled"
        server.double.script({"default": {"text": "Going on."}})
        assert client.ask("next", "r2") == "Going on."
    uses, results = _blocks(server, "tool_use"), _blocks(server, "tool_result")
    assert [u["call_id"] for u in uses] == [r["call_id"] for r in results]


def test_a_call_that_needs_a_word_waits_for_it_and_is_made_once_when_allowed(
    server: Server, effects: Path
) -> None:
    call = {"name": "send", "arguments": {"text": "hello"}}
    server.double.script(
        {"queue": [{"text": "", "tools": [call]}], "default": {"text": "It is sent."}}
    )
    with Client(server.ws_url, server.key) as client:
        client.say("send it", "r")
        frames = client.until("complete")
        [asked] = [f for f in frames if f["type"] == "confirm"]
        assert json.loads(asked["call"]) == {"text": "hello"}
        assert not effects.exists()
        for _ in range(2):
            client.send("confirm", action_id=asked["action_id"], allow=True)
        follow_up = client.until("complete")[-1]
    assert follow_up["reply"] == "It is sent."
    assert follow_up["turn_id"] != frames[-1]["turn_id"]
    assert effects.read_text() == "send: hello\n"
    last = json.dumps(server.double.requests()[-1]["messages"][-1])
    assert "allowed it" in last
    assert "send done: hello" in last
    rows = server.rows(
        "select origin, use_day from turns where user_id = $1 order by seq", server.person.id
    )
    assert [r["origin"] for r in rows] == ["user", "action"]
    assert rows[1]["use_day"] is None
    assert [m["role"] for m in _history(server)].count("user") == 1
    with Client(server.ws_url, server.key) as client:
        client.send("confirm", action_id=asked["action_id"], allow=False)
        assert client.until("error")[-1]["code"] == "conflict"


def test_a_refused_call_is_never_made_and_the_model_is_told(server: Server, effects: Path) -> None:
    call = {"name": "send", "arguments": {"text": "hello"}}
    server.double.script(
        {"queue": [{"text": "", "tools": [call]}], "default": {"text": "I leave it."}}
    )
    with Client(server.ws_url, server.key) as client:
        client.say("send it", "r")
        [asked] = [f for f in client.until("complete") if f["type"] == "confirm"]
        with Client(server.ws_url, server.key) as other:
            assert [c["action_id"] for c in other.ready["confirmations"]] == [asked["action_id"]]
        client.send("confirm", action_id=asked["action_id"], allow=False)
        assert client.until("complete")[-1]["reply"] == "I leave it."
    assert not effects.exists()
    assert "refused it" in json.dumps(server.double.requests()[-1]["messages"][-1])


def test_an_outage_in_mid_stream_is_tried_again_and_the_client_starts_over(
    server: Server,
) -> None:
    broken = {"text": "one two three four", "cut": {"after": 2, "how": "disconnect"}}
    server.double.script({"queue": [broken], "default": {"text": "The whole answer."}})
    with Client(server.ws_url, server.key) as client:
        client.say("hello", "r")
        frames = client.until(*CLOSING)
    assert frames[-1]["type"] == "complete"
    assert "retry" in {f.get("kind") for f in frames}
    assert spoken(frames) == "The whole answer."
    assert _history(server)[-1]["blocks"][0]["text"] == "The whole answer."
    rows = server.rows(
        "select error from model_calls where user_id = $1 and purpose = 'conversation' "
        "order by at, id",
        server.person.id,
    )
    assert sorted(r["error"] or "" for r in rows) == ["", "provider_error"]


def test_a_provider_that_refuses_is_a_clear_error_and_the_message_is_kept_for_a_retry(
    server: Server,
) -> None:
    server.double.script(
        {"queue": [{"error": {"status": 400, "type": "invalid_request_error", "message": "no"}}],
         "default": {"echo": True}}
    )  # fmt: skip
    with Client(server.ws_url, server.key) as client:
        turn_id = client.say("keep this", "r")["turn_id"]
        failed = client.until(*CLOSING)[-1]
        assert (failed["type"], failed["code"], failed["retry"]) == (
            "error",
            "provider_error",
            True,
        )
        client.send("retry", turn_id=turn_id)
        assert client.until("complete")[-1]["reply"] == "keep this"
    assert [m["role"] for m in _history(server)] == ["user", "assistant"]


def test_a_blank_answer_is_an_error_and_not_an_empty_reply(server: Server) -> None:
    server.double.script({"default": {"text": "", "tokens": 0}})
    with Client(server.ws_url, server.key) as client:
        client.say("hello", "r")
        failed = client.until(*CLOSING)[-1]
    assert (failed["type"], failed["code"], failed["retry"]) == ("error", "provider_error", True)
    assert [m["role"] for m in _history(server)] == ["user"]


def test_an_answer_that_was_cut_at_the_longest_length_says_so(server: Server) -> None:
    server.double.script({"default": {"text": "This is only the", "stop": "max_tokens"}})
    with Client(server.ws_url, server.key) as client:
        client.say("go on", "r")
        frames = client.until(*CLOSING)
    assert frames[-1]["reply"] == "This is only the"
    assert [f["kind"] for f in frames if f["type"] == "notice"] == ["cut"]


def test_what_a_model_says_that_no_database_can_hold_is_replaced_and_the_rest_kept(
    server: Server,
) -> None:
    server.double.script({"default": {"text": "one\u0000two ☃ 👩‍👩‍👧"}})
    with Client(server.ws_url, server.key) as client:
        assert client.ask("hello", "r") == "one\ufffdtwo ☃ 👩‍👩‍👧"


def test_a_prompt_extends_the_one_before_it_up_to_the_cache_mark(server: Server) -> None:
    with Client(server.ws_url, server.key) as client:
        for n in range(4):
            client.ask(f"message {n}", f"r{n}")
    requests = server.double.requests()
    for before, after in pairwise(requests):
        assert before["system"] == after["system"]
        old, new = (_unmarked(r["messages"]) for r in (before, after))
        assert new[: len(old) - 1] == old[:-1]
    assert requests[-1]["system"][-1]["cache_control"]
    rows = server.rows(
        "select cache_read_tokens as n from model_calls where user_id = $1 "
        "and purpose = 'conversation' order by at",
        server.person.id,
    )
    assert rows[0]["n"] == 0
    assert all(r["n"] > 0 for r in rows[1:])


def test_two_hundred_conversations_at_once_stay_apart(server: Server) -> None:
    mark = server.person.name
    people = server.residents.add_all([f"{mark}-{n:03d}" for n in range(200)])
    limits = httpx2.Limits(max_connections=200)
    with httpx2.Client(base_url=server.url, timeout=120, limits=limits) as http:

        def talk(person: Person, n: int) -> None:
            answer = http.post(
                "/v1/chat",
                headers={"Authorization": f"Bearer {person.key}"},
                json={"message": f"{person.name} says {n}"},
            )
            assert answer.json()["reply"] == f"{person.name} says {n}"

        for n in range(2):
            _at_once([lambda p=p, n=n: talk(p, n) for p in people])  # type: ignore[misc]
        for person in people:
            found = http.get(
                "/v1/messages", headers={"Authorization": f"Bearer {person.read_key}"}
            ).json()["messages"]
            assert [m["blocks"][0]["text"] for m in found] == [
                f"{person.name} says {n}" for n in (1, 1, 0, 0)
            ]
    requests = server.double.requests()
    assert len(requests) == 400
    for request in requests:
        assert len(set(re.findall(rf"{mark}-\d+", json.dumps(request["messages"])))) == 1


def _unmarked(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages without their cache marks, which move on with every turn."""
    return [
        {
            **m,
            "content": [{k: v for k, v in b.items() if k != "cache_control"} for b in m["content"]],
        }
        for m in messages
    ]


def _at_once(work: list[Callable[[], None]]) -> None:
    """Do all of it at the same time; the first failure is raised."""
    failures: list[BaseException] = []

    def run(one: Callable[[], None]) -> None:
        try:
            one()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(one,)) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
