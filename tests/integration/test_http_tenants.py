"""Two users of one server: nothing of the one is seen, changed or even confirmed to the other."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.conftest import Server
from tests.support.client import Client
from tests.support.web import http, problem

SECRET = "the-words-of-the-first-user"


@pytest.fixture
def ids(server: Server) -> dict[str, str]:
    """One of everything that the first user has, by the name that it has in paths."""
    server.double.script(
        {
            "default": {"echo": True},
            "queue": [{"tools": [{"name": "send", "arguments": {"text": SECRET}}]}],
        }
    )
    with http(server.url, server.admin_key) as client:
        answer = client.post("/v1/chat", json={"message": SECRET, "request_id": SECRET}).json()
        (action,) = client.get("/v1/actions").json()["actions"]
        (segment,) = client.get("/v1/segments").json()["segments"]
        key = client.get("/v1/keys").json()["keys"][0]
        memory = client.post(
            "/v1/memories",
            json={"text": SECRET, "entities": [{"name": SECRET, "type": "PERSON"}]},
        ).json()["memory"]
        (event,) = client.get(f"/v1/memories/{memory['id']}/events").json()["events"]
        (entity,) = client.get("/v1/entities").json()["entities"]
        client.post(f"/v1/memories/{memory['id']}/annotations", json={"text": SECRET})
        file = client.post("/v1/files?name=secret.txt", content=SECRET.encode()).json()
    (letter,) = server.rows(
        "insert into dead_letters (outbox_id, user_id, kind, address, lane, payload, attempts, "
        "error, created_at, buried_at) values ((select coalesce(max(outbox_id), 0) + 1 from "
        "dead_letters), $1, 'continuum', $2, 'turns', $3, 8, $4, now(), now()) returning id",
        server.person.id,
        str(server.person.id),
        '{"type": "TakeTurns", "at": "2026-01-05T09:00:00Z"}',
        SECRET,
    )
    return {
        "turn_id": answer["turn_id"],
        "segment_id": segment["id"],
        "action_id": action["action_id"],
        "key_id": key["id"],
        "letter_id": str(letter["id"]),
        "memory_id": memory["id"],
        "event_id": event["id"],
        "entity_id": entity["id"],
        "file_id": file["id"],
        "short_id": memory["short_id"],
    }


def endpoints(server: Server) -> list[tuple[str, str]]:
    """Every endpoint that there is, from the server's own description."""
    with http(server.url) as client:
        paths = client.get("/openapi.json").json()["paths"]
    return [(method.upper(), path) for path, methods in paths.items() for method in methods]


def filled(text: str, ids: dict[str, str]) -> str:
    return re.sub(r"{(\w+)}", lambda match: ids.get(match[1], "name"), text)


def body(path: str, ids: dict[str, str]) -> Any:
    found = BODIES.get(path)
    return (
        None
        if found is None
        else json.loads(re.sub(r"{(\w+_id)}", lambda match: ids[match[1]], json.dumps(found)))
    )


def query(path: str, ids: dict[str, str]) -> dict[str, str]:
    return {name: filled(value, ids) for name, value in QUERIES.get(path, {}).items()}


BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat": {"message": "hello", "request_id": SECRET},
    "/v1/keys": {"name": "mine"},
    "/v1/actions/{action_id}": {"allow": True},
    "/v1/secrets/{name}": {"value": "v"},
    "/v1/memories": {"text": "a neighbour's own memory"},
    "/v1/memories/merge": {"ids": ["{memory_id}", "{short_id}"], "text": "a neighbour's merge"},
    "/v1/memories/{memory_id}": {"version": 1, "text": "a neighbour's words"},
    "/v1/memories/{memory_id}/links": {"to": "{short_id}"},
    "/v1/memories/{memory_id}/annotations": {"text": "a neighbour's note"},
    "/v1/memories/{memory_id}/undo": {"event_id": "{event_id}"},
    "/v1/entities/merge": {"into": "{entity_id}", "others": ["{entity_id}"]},
}
#: What endpoints without an id in their path are asked about the first user's things.
QUERIES = {
    "/v1/memories/search": {"q": SECRET},
    "/v1/memories/graph": {"around": "{memory_id}"},
    "/v1/entities": {"q": SECRET},
}


#: Without an id in the path, and refused for one in the body or the query.
ABOUT_ANOTHER = {"/v1/memories/merge", "/v1/memories/graph", "/v1/entities/merge"}


def test_no_endpoint_shows_or_changes_what_another_user_has(
    server: Server, ids: dict[str, str]
) -> None:
    before = state_of(server)
    neighbour = server.neighbour()
    refused: set[str] = set()
    with http(server.url, neighbour.admin_key) as client:
        for method, path in endpoints(server):
            response = client.request(
                method, filled(path, ids), json=body(path, ids), params=query(path, ids)
            )
            assert SECRET not in response.text.replace(f'"request_id":"{SECRET}"', ""), path
            # What was asked for may be named in the refusal, but nothing of what it is.
            for name, value in ids.items():
                told = response.status_code == 404 or name == "letter_id"
                assert told or value not in response.text, (path, name)
            if path in ABOUT_ANOTHER:
                problem(response, 404, "not_found")
            if any(f"{{{name}}}" in path for name in ids):
                problem(response, 404, "not_found")
                refused.add(path)
    assert len(refused) >= 17
    assert state_of(server) == before


def state_of(server: Server) -> list[dict[str, Any]]:
    """Everything that stands of the first user in the tables that endpoints may change."""
    tables = (
        "turns",
        "messages",
        "segments",
        "pending_actions",
        "api_keys",
        "dead_letters",
        "outbox",
        "memories",
        "memory_annotations",
        "memory_events",
        "memory_links",
        "entities",
    )
    return [
        row
        for table in tables
        for row in server.rows(
            f"select to_jsonb(t) - 'last_used_at' - 'settled_at' as row from {table} t "  # noqa: S608
            "where user_id = $1 order by 1::text",
            server.person.id,
        )
    ]


def test_the_same_request_id_of_two_users_is_two_turns(server: Server) -> None:
    neighbour = server.neighbour()
    with http(server.url, server.key) as one, http(server.url, neighbour.key) as two:
        first = one.post("/v1/chat", json={"message": "mine", "request_id": "same"}).json()
        second = two.post("/v1/chat", json={"message": "yours", "request_id": "same"}).json()
        assert first["turn_id"] != second["turn_id"]
        assert (first["reply"], second["reply"]) == ("mine", "yours")
        assert [m["text"] for m in two.get("/v1/messages").json()["messages"]] == ["yours"] * 2


def test_a_cursor_of_one_user_shows_another_only_their_own(server: Server) -> None:
    neighbour = server.neighbour()
    with http(server.url, server.key) as one, http(server.url, neighbour.key) as two:
        for n in range(3):
            one.post("/v1/chat", json={"message": f"{SECRET} {n}"})
        two.post("/v1/chat", json={"message": "yours"})
        for path, name in (("/v1/messages", "messages"), ("/v1/turns", "turns")):
            cursor = one.get(f"{path}?limit=1").json()["next_cursor"]
            seen = two.get(f"{path}?cursor={cursor}")
            assert seen.status_code == 200
            assert SECRET not in seen.text
            assert len(seen.json()[name]) <= 2


def test_only_the_operator_touches_the_key_store_of_the_house(server: Server) -> None:
    with http(server.url, server.admin_key) as client:
        problem(client.get("/v1/secrets"), 403, "forbidden")
        problem(client.put("/v1/secrets/openai_api_key", json={"value": "x"}), 403, "forbidden")
        problem(client.delete("/v1/secrets/openai_api_key"), 403, "forbidden")


def test_over_websockets_each_user_hears_only_their_own_conversation(server: Server) -> None:
    neighbour = server.neighbour()
    with Client(server.ws_url, server.key) as one, Client(server.ws_url, neighbour.key) as two:
        assert one.ready["user_id"] != two.ready["user_id"]
        one.ask(SECRET, "r1")
        turn_id = one.say(SECRET, "r2")["turn_id"]
        for frame in ("cancel", "retry", "resume"):
            two.send(frame, turn_id=turn_id)
            refused = two.receive()
            assert (refused["type"], refused["code"]) == ("error", "not_found")
            assert refused["turn_id"] == turn_id
        two.send("ping")
        assert two.receive() == {"type": "pong"}
