"""How an answer came about, as the trace of its turn tells it."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.conftest import Server, uid
from tests.support.web import http, problem

_STORE = (
    "insert into retrieval_traces (id, user_id, turn_id, purpose, at, query, results, surfaced, "
    "used) values ($1, $2, $3, 'recall', '2026-01-05T09:00:00Z', $4::jsonb, $5::jsonb, $6, $7)"
)


def test_a_turn_tells_the_calls_that_it_made_and_what_they_took(server: Server) -> None:
    with http(server.url, server.key) as client:
        turn_id = client.post("/v1/chat", json={"message": "hello"}).json()["turn_id"]
        turn = client.get(f"/v1/turns/{turn_id}").json()
        trace = client.get(f"/v1/turns/{turn_id}/trace").json()
    assert (trace["turn_id"], trace["state"], trace["attempt"]) == (turn_id, "complete", 1)
    assert (trace["usage"], trace["timings"]) == (turn["usage"], turn["timings"])
    (call,) = trace["calls"]
    assert (call["provider"], call["error"]) == ("anthropic", None)
    assert call["output_tokens"] == turn["usage"]["output_tokens"] > 0
    assert call["total_ms"] >= call["first_event_ms"] > 0
    assert trace["retrievals"] == []


def test_a_turn_tells_what_was_searched_found_shown_and_used(server: Server) -> None:
    lanes: dict[str, Any] = {"dense": [1, 0.7]}
    found = [
        {"id": str(uid(1)), "score": 0.9, "lanes": lanes, "kept": True},
        {"id": str(uid(2)), "score": 0.2, "lanes": {}, "kept": False, "why": "ranked too low"},
    ]
    with http(server.url, server.key) as client:
        turn_id = client.post("/v1/chat", json={"message": "hello"}).json()["turn_id"]
        server.rows(
            _STORE, uid(server.person.id.int + 1), server.person.id, turn_id,
            msgspec.json.encode({"phrases": ["hello"]}).decode(),
            msgspec.json.encode(found).decode(), [uid(1)], [uid(1)],
        )  # fmt: skip
        (search,) = client.get(f"/v1/turns/{turn_id}/trace").json()["retrievals"]
    assert (search["purpose"], search["query"]) == ("recall", {"phrases": ["hello"]})
    assert search["candidates"] == [
        {"id": str(uid(1)), "score": 0.9, "detail": {"lanes": lanes, "kept": True}},
        {
            "id": str(uid(2)),
            "score": 0.2,
            "detail": {"lanes": {}, "kept": False, "why": "ranked too low"},
        },
    ]
    assert search["surfaced"] == search["used"] == [str(uid(1))]


def test_a_trace_that_is_old_keeps_ids_and_scores(server: Server) -> None:
    with http(server.url, server.key) as client:
        turn_id = client.post("/v1/chat", json={"message": "hello"}).json()["turn_id"]
        server.rows(
            _STORE, uid(server.person.id.int + 1), server.person.id, turn_id, None,
            f'[{{"id": "{uid(1)}", "score": 0.5}}]', [], [],
        )  # fmt: skip
        (search,) = client.get(f"/v1/turns/{turn_id}/trace").json()["retrievals"]
    assert search["query"] is None
    assert search["candidates"] == [{"id": str(uid(1)), "score": 0.5, "detail": {}}]


def test_every_attempt_of_a_turn_is_in_its_trace(server: Server) -> None:
    refusal = {"status": 400, "type": "invalid_request_error", "message": "hm"}
    server.double.script({"queue": [{"error": refusal}], "default": {"echo": True}})
    asked = {"message": "hello", "request_id": "r1"}
    with http(server.url, server.key) as client:
        turn_id = client.post("/v1/chat", json=asked).json()["turn_id"]
        (call,) = client.get(f"/v1/turns/{turn_id}/trace").json()["calls"]
        assert call["error"]
        client.post(f"/v1/turns/{turn_id}/retry")
        client.post("/v1/chat", json=asked)  # answers when the turn has ended
        trace = client.get(f"/v1/turns/{turn_id}/trace").json()
    assert (trace["state"], trace["attempt"]) == ("complete", 2)
    assert [bool(call["error"]) for call in trace["calls"]] == [True, False]


def test_an_unknown_turn_has_no_trace(server: Server) -> None:
    with http(server.url, server.key) as client:
        problem(client.get(f"/v1/turns/{uid(1)}/trace"), 404, "not_found")
        problem(client.get("/v1/turns/x/trace"), 404, "not_found")
