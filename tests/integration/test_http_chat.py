"""A turn over HTTP: asked, streamed, repeated, resumed, cancelled, tried again."""

from __future__ import annotations

import json
import threading
from typing import Any

import httpx2
import pytest

from tests.conftest import Server
from tests.support.client import spoken
from tests.support.web import Event, events, http, problem


def stream(client: httpx2.Client, **body: Any) -> list[Event]:
    with client.stream("POST", "/v1/chat", json={**body, "stream": True}) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        return list(events(response))


def frames(told: list[Event]) -> list[dict[str, Any]]:
    return [event.data for event in told]


def test_a_message_is_answered(server: Server) -> None:
    with http(server.url, server.key) as client:
        answer = client.post("/v1/chat", json={"message": "good morning", "request_id": "r1"})
        assert answer.status_code == 200
        told = answer.json()
        assert told["reply"] == "good morning"
        assert told["request_id"] == "r1"
        assert told["usage"]["calls"] == 1
        assert told["usage"]["output_tokens"] > 0
        assert told["memories"] == {"surfaced": [], "cited": []}
        assert told["tools_used"] == []
        assert told["timings"]["first_text_ms"] > 0
        turn = client.get(f"/v1/turns/{told['turn_id']}").json()
        assert (turn["state"], turn["request_id"], turn["attempt"]) == ("complete", "r1", 1)
        assert [(m["role"], m["text"]) for m in turn["messages"]] == [
            ("user", "good morning"),
            ("assistant", "good morning"),
        ]


def test_without_a_request_id_each_message_is_a_turn_of_its_own(server: Server) -> None:
    with http(server.url, server.key) as client:
        first, second = (client.post("/v1/chat", json={"message": "same"}).json() for _ in "12")
    assert first["turn_id"] != second["turn_id"]
    assert first["request_id"] != second["request_id"]


def test_the_same_request_again_is_the_same_turn_with_the_same_answer(server: Server) -> None:
    with http(server.url, server.key) as client:
        body = {"message": "only once", "request_id": "r1"}
        first, second = (client.post("/v1/chat", json=body).json() for _ in "12")
        streamed = stream(client, **body)
        assert second == first
        assert streamed[0].data == {
            "type": "accepted",
            "turn_id": first["turn_id"],
            "request_id": "r1",
            "duplicate": True,
        }
        assert streamed[-1].data["reply"] == "only once"
        assert len(client.get("/v1/turns").json()["turns"]) == 1
    assert len(server.double.requests()) == 1


def test_a_request_id_cannot_stand_for_other_words(server: Server) -> None:
    with http(server.url, server.key) as client:
        client.post("/v1/chat", json={"message": "one", "request_id": "r1"})
        refused = client.post("/v1/chat", json={"message": "two", "request_id": "r1"})
        problem(refused, 409, "conflict")
        assert len(client.get("/v1/messages").json()["messages"]) == 2


def test_a_streamed_answer_is_told_in_numbered_events(server: Server) -> None:
    server.double.script({"default": {"tokens": 40, "token_ms": 2}})
    with http(server.url, server.key) as client:
        told = stream(client, message="go on", request_id="r1")
    assert [told[0].name, told[-1].name] == ["accepted", "complete"]
    assert not told[0].data["duplicate"]
    numbers = [event.data["seq"] for event in told[1:]]
    assert numbers == sorted(set(numbers))
    assert [event.id for event in told[1:]] == [str(number) for number in numbers]
    assert all(event.name == event.data["type"] for event in told)
    assert {event.data["turn_id"] for event in told} == {told[0].data["turn_id"]}
    assert spoken(frames(told[1:])) == told[-1].data["reply"]
    assert len(told[-1].data["reply"].split()) == 40


def test_a_streamed_turn_can_be_taken_up_from_any_event(server: Server) -> None:
    server.double.script({"default": {"tokens": 12, "token_ms": 1}})
    with http(server.url, server.key) as client:
        told = stream(client, message="go on")
        turn_id, reply = told[0].data["turn_id"], told[-1].data["reply"]
        last = told[-1].data["seq"]
        for after in (0, 3, last - 1):
            with client.stream("GET", f"/v1/turns/{turn_id}/events?after={after}") as response:
                rest = list(events(response))
            assert all(event.data["seq"] > after for event in rest)
            assert rest[-1].data["reply"] == reply
        with client.stream(
            "GET", f"/v1/turns/{turn_id}/events", headers={"last-event-id": str(last - 1)}
        ) as response:
            assert [event.name for event in events(response)] == ["complete"]


def test_following_a_turn_past_its_end_ends_at_once(server: Server) -> None:
    with http(server.url, server.key) as client:
        told = stream(client, message="short")
        turn_id, last = told[0].data["turn_id"], told[-1].data["seq"]
        for after in (last, last + 1, 2**40):
            with client.stream("GET", f"/v1/turns/{turn_id}/events?after={after}") as response:
                assert list(events(response)) == []


def test_a_running_turn_is_resumed_without_gap_or_repetition(server: Server) -> None:
    server.double.script({"default": {"tokens": 60, "token_ms": 10}})
    with http(server.url, server.key) as client:
        seen: list[dict[str, Any]] = []
        with client.stream(
            "POST", "/v1/chat", json={"message": "long", "stream": True}
        ) as response:
            for event in events(response):
                seen.append(event.data)
                if event.data.get("seq", 0) >= 15:
                    break
        turn_id, after = seen[0]["turn_id"], seen[-1]["seq"]
        assert seen[-1]["type"] == "text"
        with client.stream("GET", f"/v1/turns/{turn_id}/events?after={after}") as response:
            seen += [event.data for event in events(response)]
    numbers = [frame["seq"] for frame in seen[1:]]
    assert numbers == sorted(set(numbers))
    assert spoken(seen[1:]) == seen[-1]["reply"]


def test_a_client_that_leaves_does_not_stop_its_turn(server: Server) -> None:
    server.double.script({"default": {"tokens": 30, "token_ms": 10}})
    with http(server.url, server.key) as client:
        with client.stream("POST", "/v1/chat", json={"message": "bye", "stream": True}) as response:
            turn_id = next(events(response)).data["turn_id"]
        with client.stream("GET", f"/v1/turns/{turn_id}/events") as response:
            end = list(events(response))[-1]
        assert end.name == "complete"
        assert len(end.data["reply"].split()) == 30


def test_a_waiting_client_that_leaves_does_not_stop_its_turn(server: Server) -> None:
    server.double.script({"default": {"tokens": 20, "token_ms": 20}})
    with http(server.url, server.key) as client:
        with pytest.raises(httpx2.ReadTimeout):
            client.post("/v1/chat", json={"message": "x", "request_id": "r1"}, timeout=0.2)
        # The same request again joins the turn that goes on.
        answer = client.post("/v1/chat", json={"message": "x", "request_id": "r1"}).json()
        assert len(answer["reply"].split()) == 20
    assert len(server.double.requests()) == 1


def test_a_turn_is_cancelled_and_what_was_written_is_kept(server: Server) -> None:
    server.double.script({"default": {"tokens": 500, "token_ms": 20}})
    with http(server.url, server.key) as client:
        with client.stream(
            "POST", "/v1/chat", json={"message": "stop me", "stream": True}
        ) as response:
            told: list[dict[str, Any]] = []
            for event in events(response):
                told.append(event.data)
                if len(told) == 4:
                    cancelled = client.post(f"/v1/turns/{told[0]['turn_id']}/cancel")
                    assert cancelled.status_code == 200
        assert told[-1]["type"] == "cancelled"
        turn = client.get(f"/v1/turns/{told[0]['turn_id']}").json()
        assert turn["state"] == "cancelled"
        kept = turn["messages"][-1]
        assert (kept["state"], kept["text"]) == ("cancelled", told[-1]["text"])
        assert told[-1]["text"].startswith(spoken(told[1:-1]))
        again = client.post(f"/v1/turns/{told[0]['turn_id']}/cancel")
        assert again.json() == {"turn_id": told[0]["turn_id"], "state": "cancelled"}


def test_who_waits_for_a_turn_is_told_that_it_was_cancelled(server: Server) -> None:
    server.double.script({"default": {"tokens": 500, "token_ms": 20}})
    answers: list[httpx2.Response] = []
    with http(server.url, server.key) as client, http(server.url, server.key) as other:
        waiting = threading.Thread(
            target=lambda: answers.append(
                client.post("/v1/chat", json={"message": "x", "request_id": "r1"})
            )
        )
        waiting.start()
        with other.stream(
            "POST", "/v1/chat", json={"message": "x", "request_id": "r1", "stream": True}
        ) as response:
            for event in events(response):
                if event.name == "text":
                    other.post(f"/v1/turns/{event.data['turn_id']}/cancel")
        waiting.join(30)
    told = problem(answers[0], 409, "conflict")
    assert told["turn_id"]
    assert told["text"]


def test_a_provider_that_fails_is_told_as_such_and_the_turn_can_be_tried_again(
    server: Server,
) -> None:
    server.double.script(
        {
            "default": {"echo": True},
            "queue": [{"error": {"status": 400, "type": "invalid_request_error", "message": "hm"}}],
        }
    )
    with http(server.url, server.key) as client:
        failed = client.post("/v1/chat", json={"message": "hello", "request_id": "r1"})
        told = problem(failed, 502, "provider_error")
        turn = client.get(f"/v1/turns/{told['turn_id']}").json()
        assert turn["state"] == "failed"
        assert turn["error"]["code"] == "provider_error"
        again = client.post(f"/v1/turns/{told['turn_id']}/retry")
        assert again.status_code == 200
        assert again.json()["turn_id"] == told["turn_id"]
        answer = client.post("/v1/chat", json={"message": "hello", "request_id": "r1"}).json()
        assert answer["reply"] == "hello"
        assert answer["turn_id"] == told["turn_id"]
        refused = client.post(f"/v1/turns/{told['turn_id']}/retry")
        problem(refused, 409, "conflict")


def test_a_quiet_stream_is_kept_alive(strict: Server) -> None:
    strict.double.script({"default": {"text": "late", "first_token_ms": 900}})
    body = {"message": "x", "stream": True}
    with (
        http(strict.url, strict.key) as client,
        client.stream("POST", "/v1/chat", json=body) as response,
    ):
        lines = list(response.iter_lines())
    beats = [line for line in lines if line.startswith(":")]
    assert len(beats) >= 2
    assert json.loads(lines[-2].removeprefix("data: "))["reply"] == "late"
