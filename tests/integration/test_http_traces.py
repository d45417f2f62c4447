"""How an answer came about, as the trace of its turn tells it."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.conftest import Server, uid
from tests.support.web import http, problem

_STORE = (
    "insert into retrieval_traces (id, user_id, turn_id, purpose, at, query, results, surfaced, "
    "used) values ($1, $2, $3, 'made up', '2026-01-05T09:00:00Z', $4::jsonb, $5::jsonb, $6, $7)"
)


def _of(trace: dict[str, Any], kind: str, purpose: str) -> list[dict[str, Any]]:
    return [one for one in trace[kind] if one["purpose"] == purpose]


def test_a_turn_tells_the_calls_that_it_made_and_what_they_took(server: Server) -> None:
    with http(server.url, server.key) as client:
        turn_id = client.post("/v1/chat", json={"message": "hello"}).json()["turn_id"]
        turn = client.get(f"/v1/turns/{turn_id}").json()
        trace = client.get(f"/v1/turns/{turn_id}/trace").json()
    assert (trace["turn_id"], trace["state"], trace["attempt"]) == (turn_id, "complete", 1)
    assert (trace["usage"], trace["timings"]) == (turn["usage"], turn["timings"])
    (call,) = _of(trace, "calls", "conversation")
    assert (call["provider"], call["error"]) == ("anthropic", None)
    assert call["output_tokens"] == turn["usage"]["output_tokens"] > 0
    assert call["total_ms"] >= call["first_event_ms"] > 0
    (aside,) = _of(trace, "calls", "subcortex")
    assert aside["model"] == "aside"
    assert aside["error"] is None, aside
    assert aside["output_tokens"] > 0


def test_a_turn_tells_what_it_looked_for_and_what_its_prompt_was_made_of(server: Server) -> None:
    said = {
        "phrases": ["the violin", "lessons on Tuesday"], "entities": ["Grace"], "retain": [],
        "complexity": "straightforward",
    }  # fmt: skip
    server.double.script({
        "default": {"text": "On Tuesday."}, "aside": {"text": msgspec.json.encode(said).decode()},
    })  # fmt: skip
    with http(server.url, server.key) as client:
        kept = client.post("/v1/memories", json={"text": "Grace teaches the violin."}).json()
        answer = client.post("/v1/chat", json={"message": "When does she teach me?"}).json()
        trace = client.get(f"/v1/turns/{answer['turn_id']}/trace").json()
    account = trace["account"]
    looked = account["subcortex"]
    assert (looked["phrases"], looked["entities"]) == (said["phrases"], said["entities"])
    assert (looked["complexity"], looked["fallback"]) == ("straightforward", None)
    assert (account["effort"], account["speculative"], account["cuts"]) == ("medium", False, 0)
    memory = kept["memory"]
    assert [one["id"] for one in account["memories"]] == [memory["id"]]
    assert answer["memories"] == {"surfaced": [memory["short_id"]], "cited": []}
    sections = {one["name"]: one for one in account["sections"]}
    assert sections["BasePrompt"]["placement"] == "system"
    assert sections["ProactiveMemory"]["placement"] == "hud"
    assert all(one["tokens"] > 0 and one["error"] is None for one in sections.values())
    assert account["missed"] == account["dropped"] == []
    assert account["failed"] == {}
    assert trace["timings"]["recalled_ms"] <= trace["timings"]["composed_ms"]


def test_each_answer_lists_the_memories_that_were_found_for_it_with_their_scores(
    server: Server,
) -> None:
    facts = (
        "Grace teaches the violin on Tuesdays.",
        "The violin of Grace was built in Cremona.",
        "The cellar key hangs behind the blue door.",
    )
    with http(server.url, server.key) as client:
        known = {
            made["memory"]["id"]: made["memory"]["text"]
            for made in (client.post("/v1/memories", json={"text": one}).json() for one in facts)
        }
        turns = [
            client.post("/v1/chat", json={"message": words}).json()["turn_id"]
            for words in ("Tell me about the violin of Grace.", "Where is the cellar key?")
        ]
        traces = [client.get(f"/v1/turns/{turn_id}/trace").json() for turn_id in turns]
    for trace, first in zip(traces, ("violin", "cellar"), strict=True):
        shown = trace["account"]["memories"]
        assert first in " ".join(known[one["id"]] for one in shown)
        assert all(0 < one["score"] <= 1 for one in shown)
        # Of those that were shown each stands in a search of the same turn, with its score there.
        searches = [s for s in trace["retrievals"] if s["candidates"]]
        assert searches
        for search in searches:
            scores = [one["score"] for one in search["candidates"]]
            assert scores == sorted(scores, reverse=True)
        fresh = {one["id"] for one in shown if one["found_by"] != "retained"}
        assert fresh <= {one["id"] for search in searches for one in search["candidates"]}
        assert fresh


def test_a_subcortex_that_says_nothing_usable_costs_no_answer_and_is_named(server: Server) -> None:
    server.double.script({"default": {"text": "Yes."}, "aside": {"text": "I would rather not."}})
    with http(server.url, server.key) as client:
        answer = client.post("/v1/chat", json={"message": "Do you know Grace?"}).json()
        account = client.get(f"/v1/turns/{answer['turn_id']}/trace").json()["account"]
    assert answer["reply"] == "Yes."
    assert account["subcortex"]["fallback"] == "unreadable"
    assert (account["speculative"], account["effort"]) == (True, "high")


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
        trace = client.get(f"/v1/turns/{turn_id}/trace").json()
    (search,) = _of(trace, "retrievals", "made up")
    assert search["query"] == {"phrases": ["hello"]}
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
        (search,) = _of(client.get(f"/v1/turns/{turn_id}/trace").json(), "retrievals", "made up")
    assert search["query"] is None
    assert search["candidates"] == [{"id": str(uid(1)), "score": 0.5, "detail": {}}]


def test_every_attempt_of_a_turn_is_in_its_trace(server: Server) -> None:
    refusal = {"status": 400, "type": "invalid_request_error", "message": "hm"}
    server.double.script({"queue": [{"error": refusal}], "default": {"echo": True}})
    asked = {"message": "hello", "request_id": "r1"}
    with http(server.url, server.key) as client:
        turn_id = client.post("/v1/chat", json=asked).json()["turn_id"]
        trace = client.get(f"/v1/turns/{turn_id}/trace").json()
        (call,) = _of(trace, "calls", "conversation")
        assert call["error"]
        client.post(f"/v1/turns/{turn_id}/retry")
        client.post("/v1/chat", json=asked)  # answers when the turn has ended
        trace = client.get(f"/v1/turns/{turn_id}/trace").json()
    assert (trace["state"], trace["attempt"]) == ("complete", 2)
    assert [bool(c["error"]) for c in _of(trace, "calls", "conversation")] == [True, False]


def test_an_unknown_turn_has_no_trace(server: Server) -> None:
    with http(server.url, server.key) as client:
        problem(client.get(f"/v1/turns/{uid(1)}/trace"), 404, "not_found")
        problem(client.get("/v1/turns/x/trace"), 404, "not_found")
