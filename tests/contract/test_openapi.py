"""The OpenAPI document says what the server does, and the server does what it says."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.conftest import Server
from tests.support.web import http

#: Names and types that clients rely on. A change here is a change for every client.
REPLY = {
    "turn_id": "string",
    "request_id": "string",
    "reply": "string",
    "usage": "Usage",
    "memories": "MemoriesUsed",
    "tools_used": "array",
    "timings": "Timings",
}
BOUNDED = settings(
    max_examples=10, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck)
)
CHECKED = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]
PROBLEM = {"type", "title", "status", "detail", "code", "request_id"}


@pytest.fixture
def document(server: Server) -> dict[str, Any]:
    with http(server.url) as client:
        response = client.get("/openapi.json")
    assert response.headers["content-type"] == "application/json"
    found: dict[str, Any] = response.json()
    return found


def kind(schema: dict[str, Any]) -> str:
    return str(schema.get("type") or schema["$ref"].rpartition("/")[2])


def test_every_endpoint_is_described_with_its_answers_and_failures(
    document: dict[str, Any],
) -> None:
    assert document["openapi"].startswith("3.1")
    described = {
        f"{method.upper()} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    assert {
        "POST /v1/chat",
        "GET /v1/turns",
        "GET /v1/turns/{turn_id}",
        "GET /v1/turns/{turn_id}/events",
        "POST /v1/turns/{turn_id}/cancel",
        "POST /v1/turns/{turn_id}/retry",
        "GET /v1/turns/{turn_id}/trace",
        "POST /v1/conversation",
        "GET /v1/messages",
        "GET /v1/messages/{message_id}",
        "GET /v1/messages/{message_id}/results/{call_id}",
        "GET /v1/segments",
        "GET /v1/segments/{segment_id}",
        "POST /v1/segments/active/pause",
        "POST /v1/segments/active/resume",
        "POST /v1/segments/active/collapse",
        "POST /v1/segments/{segment_id}/retry",
        "GET /v1/working-memory",
        "GET /v1/memories",
        "POST /v1/memories",
        "POST /v1/memories/merge",
        "GET /v1/memories/search",
        "GET /v1/memories/graph",
        "GET /v1/memories/{memory_id}",
        "PATCH /v1/memories/{memory_id}",
        "DELETE /v1/memories/{memory_id}",
        "POST /v1/memories/{memory_id}/archive",
        "POST /v1/memories/{memory_id}/restore",
        "GET /v1/memories/{memory_id}/links",
        "POST /v1/memories/{memory_id}/links",
        "POST /v1/memories/{memory_id}/annotations",
        "GET /v1/memories/{memory_id}/explain",
        "GET /v1/memories/{memory_id}/events",
        "POST /v1/memories/{memory_id}/undo",
        "GET /v1/entities",
        "POST /v1/entities/merge",
        "GET /v1/actions",
        "POST /v1/actions/{action_id}",
        "GET /v1/keys",
        "POST /v1/keys",
        "DELETE /v1/keys/{key_id}",
        "GET /v1/dead-letters",
        "POST /v1/files",
        "GET /v1/files/{file_id}",
        "DELETE /v1/files/{file_id}",
        "GET /v1/files/{file_id}/about",
        "GET /v1/files/{file_id}/words",
        "POST /v1/dead-letters/{letter_id}/replay",
        "GET /v1/secrets",
        "PUT /v1/secrets/{name}",
        "DELETE /v1/secrets/{name}",
        "GET /v1/session",
        "POST /v1/session",
        "POST /v1/session/logout",
        "POST /v1/signin",
        "GET /v1/health/live",
        "GET /v1/health/ready",
        "GET /v1/status",
        "GET /metrics",
    } == set(described)
    for name, operation in described.items():
        assert operation["summary"], name
        if operation["security"]:
            assert {"401", "403", "429", "503"} <= set(operation["responses"]), name
        declared = {p["name"] for p in operation["parameters"] if p["in"] == "path"}
        assert declared == set(re.findall(r"{(\w+)}", name)), name
    assert len({operation["operationId"] for operation in described.values()}) == len(described)


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    names = set(document["components"]["schemas"])
    used = set(re.findall(r'"#/components/schemas/([^"]+)"', str(document).replace("'", '"')))
    assert used
    assert all(re.fullmatch(r"[A-Z][A-Za-z]+", name) for name in names)
    assert used <= names


def test_the_fields_that_clients_rely_on_keep_their_names(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    reply = schemas["ChatReply"]
    assert {
        name: kind(schema) for name, schema in reply["properties"].items() if name in REPLY
    } == REPLY
    assert set(REPLY) <= set(reply["required"])
    assert set(schemas["Problem"]["required"]) == PROBLEM
    message = schemas["Message"]["properties"]
    assert {"id", "turn_id", "turn_seq", "position", "role", "text", "blocks", "state"} <= set(
        message
    )
    for page, items in (
        ("MessagePage", "messages"),
        ("TurnPage", "turns"),
        ("SegmentPage", "segments"),
        ("LetterPage", "dead_letters"),
        ("MemoryPage", "memories"),
        ("EntityPage", "entities"),
    ):
        assert set(schemas[page]["properties"]) == {items, "next_cursor"}


def test_the_frames_of_the_websocket_are_described(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]

    def tags(name: str) -> set[str]:
        union = schemas[name]["anyOf"]
        return {
            schemas[option["$ref"].rpartition("/")[2]]["properties"]["type"]["enum"][0]
            for option in union
        }

    assert tags("ClientFrame") == {
        "auth", "message", "cancel", "retry", "resume", "confirm", "ack", "ping",
    }  # fmt: skip
    assert tags("ServerFrame") == {
        "ready", "turn", "accepted", "confirm", "error", "pong", "shutdown",
    }  # fmt: skip
    assert tags("TurnEvent") == {
        "text", "thinking", "tool", "notice", "error", "snapshot", "interrupted", "cancelled",
        "complete",
    }  # fmt: skip


def test_what_is_answered_has_the_fields_that_are_described(
    server: Server, document: dict[str, Any]
) -> None:
    schemas = document["components"]["schemas"]
    with http(server.url, server.admin_key) as client:
        answer = client.post("/v1/chat", json={"message": "hello"}).json()
        turn = client.get(f"/v1/turns/{answer['turn_id']}").json()
        stored = client.post("/v1/memories", json={"text": "Ada keeps bees on the roof"}).json()
        memory = f"/v1/memories/{stored['memory']['id']}"
        answered = {
            "ChatReply": answer,
            "TurnDetail": turn,
            "Message": turn["messages"][0],
            "Turn": client.get("/v1/turns").json()["turns"][0],
            "Segment": client.get("/v1/segments").json()["segments"][0],
            "Key": client.get("/v1/keys").json()["keys"][0],
            "ConversationView": client.post("/v1/conversation").json(),
            "SessionView": client.get("/v1/session").json(),
            "StoredMemory": stored,
            "Memory": stored["memory"],
            "MemoryDetail": client.get(memory).json(),
            "MemoryEventView": client.get(f"{memory}/events").json()["events"][0],
            "MemoryExplanation": client.get(f"{memory}/explain").json(),
            "MemoryGraph": client.get("/v1/memories/graph").json(),
            "SearchHit": client.get("/v1/memories/search?q=bees").json()["hits"][0],
            "TurnTrace": client.get(f"/v1/turns/{answer['turn_id']}/trace").json(),
            "Status": client.get("/v1/status").json(),
            "Readiness": client.get("/v1/health/ready").json(),
            "Problem": client.get("/v1/nothing").json(),
        }
    for name, value in answered.items():
        described = schemas[name]["properties"]
        assert set(value) <= set(described), name
        assert set(schemas[name].get("required", [])) <= set(value), name


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_the_server_keeps_to_its_document_under_generated_requests(
    server: Server, mode: GenerationMode
) -> None:
    """Requests that fit the document, and such that do not: no failure but those described."""
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    headers = {"Authorization": f"Bearer {server.admin_key}"}
    tried: set[str] = set()

    def holds(case: schemathesis.Case[Any]) -> None:
        case.call_and_validate(headers=headers, checks=CHECKED)
        tried.add(case.operation.label)

    for found in schema.get_all_operations():
        assert isinstance(found, Ok), found
        operation = found.ok()
        with suppress(Unsatisfiable):  # Nothing in it can be wrong.
            BOUNDED(given(case=operation.as_strategy(mode))(holds))()
    assert len(tried) >= (47 if mode is GenerationMode.POSITIVE else 25)
