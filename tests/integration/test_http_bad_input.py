"""What nobody should send over HTTP: a clear answer each, and nothing stored by halves."""

from __future__ import annotations

import json
import socket
from typing import Any
from urllib.parse import urlsplit

import pytest

from mira.ids import SystemIds
from mira.web.reading import write_cursor
from tests.conftest import Server
from tests.support.web import http, problem

JSON = {"content-type": "application/json"}


def nothing_is_stored(server: Server) -> bool:
    return not server.rows("select 1 from turns where user_id = $1", server.person.id)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"hello"',
        b"{\xff}",
        b'{"message": "\xc3\x28"}',
        b'{"message": "\\ud800"}',
        b'{"message": "\\udc00x"}',
        b'{"message": "x",}',
        b"{'message': 'x'}",
        b'{"message": NaN}',
        b"[" * 100_000,
        b'{"a":' * 50_000,
    ],
)
def test_what_is_no_acceptable_json_is_refused(server: Server, body: bytes) -> None:
    with http(server.url, server.key) as client:
        refused = client.post("/v1/chat", content=body, headers=JSON)
        assert refused.status_code in (400, 422)
        problem(refused, refused.status_code, "validation_error")
        assert client.get("/v1/session").status_code == 200
    assert nothing_is_stored(server)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("message", None),
        ("message", 5),
        ("message", ["x"]),
        ("message", {}),
        ("message", ""),
        ("message", "   \n\t "),
        ("message", "a\x00b"),
        ("message", "x" * 100_001),
        ("request_id", ""),
        ("request_id", 7),
        ("request_id", "r" * 201),
        ("request_id", "r\x00"),
        ("attachments", "file"),
        ("attachments", [str(SystemIds().new()) for _ in range(11)]),
        ("include_thinking", "yes"),
        ("stream", 1),
    ],
)
def test_a_field_that_is_wrong_is_named(server: Server, field: str, value: Any) -> None:
    with http(server.url, server.key) as client:
        refused = client.post("/v1/chat", json={"message": "fine", field: value})
        told = problem(refused, 422, "validation_error")
        named = {error["field"] for error in told["errors"]}
        assert named & {field, "content" if field == "message" else field}
    assert nothing_is_stored(server)


def test_the_longest_message_is_taken_whole(server: Server) -> None:
    words = "🦊" * 99_999 + "!"
    with http(server.url, server.key) as client:
        assert client.post("/v1/chat", json={"message": words}).status_code == 200
        stored = client.get("/v1/messages").json()["messages"][-1]
    assert stored["text"] == words


@pytest.mark.parametrize(
    "words",
    [
        "مرحبا بالعالم ‏שלום",
        "漢字かな交じり文 한국어",
        "e\u0301\u0323" + "\u0301" * 300,
        "👩‍👩‍👧‍👦" * 50,
        "\u202eright to left override\u202c",
        "line\r\nbreak\ttab \u2028\u2029\ufeff",
        "\x01\x02\x1f\x7f",
        "\U0010ffff\ufffe\uffff",
    ],
)
def test_text_of_any_script_comes_back_as_it_was_said(server: Server, words: str) -> None:
    with http(server.url, server.key) as client:
        answer = client.post("/v1/chat", json={"message": words}).json()
        said = client.get("/v1/messages").json()["messages"][-1]["text"]
    assert answer["reply"] == words
    assert said == words


@pytest.mark.parametrize(
    "kind",
    [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"],
)
def test_only_json_is_taken(server: Server, kind: str | None) -> None:
    headers = {"content-type": kind} if kind else {}
    with http(server.url, server.key) as client:
        refused = client.post("/v1/chat", content=b'{"message": "x"}', headers=headers)
        problem(refused, 400, "validation_error")
    assert nothing_is_stored(server)


def test_a_body_that_is_too_large_is_refused_with_or_without_its_length(server: Server) -> None:
    large = json.dumps({"message": "x" * 2_000_000}).encode()
    with http(server.url, server.key) as client:
        problem(client.post("/v1/chat", content=large, headers=JSON), 413, "too_large")
        chunks = (large[at : at + 65536] for at in range(0, len(large), 65536))
        problem(client.post("/v1/chat", content=chunks, headers=JSON), 413, "too_large")
        assert client.get("/v1/session").status_code == 200
    assert nothing_is_stored(server)


def test_unknown_fields_are_ignored(server: Server) -> None:
    with http(server.url, server.key) as client:
        answer = client.post("/v1/chat", json={"message": "x", "mood": "good"})
        assert answer.status_code == 200


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=201", "limit=-1", "limit=x", "limit=1.5", "limit=99999999999999999999",
     "cursor=x", "cursor=%00", "cursor=WzFd.", "cursor=" + "A" * 201, "cursor=WyJ4Il0",
     "cursor=Wzk5OTk5OTk5OTk5OTk5OTk5OTk5OTld"],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/turns", "/v1/segments"])
def test_a_query_that_is_wrong_is_refused(server: Server, path: str, query: str) -> None:
    with http(server.url, server.key) as client:
        problem(client.get(f"{path}?{query}"), 422, "validation_error")


@pytest.mark.parametrize(
    "moment", ["0001-01-01T00:00:00+14:00", "2026-01-01T00:00:00", "9999-12-31T23:59:59-12:00"]
)
def test_a_cursor_that_was_made_up_with_an_impossible_moment_is_refused(
    server: Server, moment: str
) -> None:
    cursor = write_cursor(moment, "00000000-0000-7000-8000-000000000000")
    with http(server.url, server.key) as client:
        for path in ("/v1/segments", "/v1/memories"):
            refused = client.get(path, params={"cursor": cursor})
            problem(refused, 422, "validation_error")


@pytest.mark.parametrize("after", ["-1", "x", "1.5", "99999999999999999999"])
def test_an_event_number_that_is_none_is_refused(server: Server, after: str) -> None:
    with http(server.url, server.key) as client:
        turn_id = client.post("/v1/chat", json={"message": "x"}).json()["turn_id"]
        path = f"/v1/turns/{turn_id}/events"
        problem(client.get(f"{path}?after={after}"), 422, "validation_error")
        problem(client.get(path, headers={"last-event-id": after}), 422, "validation_error")


@pytest.mark.parametrize(
    "name", ["x", "1", "..", "%00", "a" * 300, "00000000-0000-0000-0000-00000000000g"]
)
def test_what_is_no_id_is_not_found(server: Server, name: str) -> None:
    with http(server.url, server.key) as client:
        problem(client.get(f"/v1/turns/{name}/events"), 404, "not_found")
        problem(client.post(f"/v1/turns/{name}/cancel"), 404, "not_found")


def test_an_address_that_is_none_is_not_found_and_a_method_that_is_none_not_allowed(
    server: Server,
) -> None:
    with http(server.url, server.key) as client:
        for path in (
            "/v1",
            "/v1/",
            "/v1/nothing",
            "/v1/messages/",
            "/static/",
            "/static/%2e%2e/app.py",
        ):
            problem(client.get(path), 404, "not_found")
        refused = client.delete("/v1/messages")
        problem(refused, 405, "method_not_allowed")
        assert refused.headers["allow"] == "GET, HEAD"
        problem(client.post("/"), 405, "method_not_allowed")


def test_a_request_id_is_one_turn_whoever_races_and_other_words_are_refused(server: Server) -> None:
    with http(server.url, server.key) as client:
        client.post("/v1/chat", json={"message": "one", "request_id": "same"})
        refused = client.post("/v1/chat", json={"message": "one ", "request_id": "same"})
        problem(refused, 409, "conflict")
    assert len(server.rows("select 1 from messages where user_id = $1", server.person.id)) == 2


def test_too_many_requests_are_told_when_to_come_back(strict: Server) -> None:
    with http(strict.url, strict.key) as client, http(strict.url, strict.read_key) as other:
        codes = [client.get("/v1/session").status_code for _ in range(41)]
        assert codes.count(200) == 40
        refused = client.get("/v1/session")
        told = problem(refused, 429, "rate_limited")
        assert int(refused.headers["retry-after"]) >= 1
        assert told["retry_after"] > 0
        assert other.get("/v1/session").status_code == 200


def test_a_connection_that_speaks_no_http_is_closed_and_the_next_one_served(server: Server) -> None:
    address = urlsplit(server.url)
    assert address.hostname
    assert address.port
    for noise in (b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"A" * 100_000 + b"\r\n\r\n"):
        with socket.create_connection((address.hostname, address.port), timeout=10) as plain:
            plain.sendall(noise)
            plain.shutdown(socket.SHUT_WR)
            while plain.recv(65536):
                pass
    with http(server.url, server.key) as client:
        assert client.get("/v1/session").status_code == 200
