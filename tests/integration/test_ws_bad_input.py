"""What nobody should send over the WebSocket: a clear answer each, and the connection lives on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from tests.conftest import Server
from tests.support.client import Client
from tests.support.web import http


def closed_with(socket: ClientConnection) -> tuple[list[dict[str, Any]], int | None]:
    """What was told before the server closed, and its close code (None: it just left)."""
    told: list[dict[str, Any]] = []
    closed: ConnectionClosed | None = None
    while closed is None:
        try:
            told.append(json.loads(socket.recv(20)))
        except ConnectionClosed as end:
            closed = end
    return told, closed.rcvd.code if closed.rcvd else None


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "hello",
        "null",
        "5",
        "[]",
        "{}",
        "{",
        '{"type": 5}',
        '{"type": null}',
        '{"type": "dance"}',
        '{"type": "message"}',
        '{"type": "message", "request_id": "r"}',
        '{"type": "message", "request_id": "r", "content": 5}',
        '{"type": "message", "request_id": 5, "content": "x"}',
        '{"type": "message", "request_id": "r", "content": null}',
        '{"type": "message", "request_id": "r", "content": "\\ud800"}',
        '{"type": "message", "request_id": "r", "content": "x", "attachments": "y"}',
        '{"type": "message", "request_id": "r", "content": "x", "include_thinking": "yes"}',
        '{"type": "cancel"}',
        '{"type": "cancel", "turn_id": "x"}',
        '{"type": "resume", "turn_id": "x", "after": 0}',
        '{"type": "confirm", "action_id": "x", "allow": true}',
        '{"type": "ready"}',
        "[" * 10_000,
        '{"type":' * 5_000,
    ],
)
def test_a_bad_frame_is_answered_with_an_error_and_the_connection_stays(
    server: Server, frame: str
) -> None:
    with Client(server.ws_url, server.key) as client:
        client.socket.send(frame)
        refused = client.receive()
        assert (refused["type"], refused["code"]) == ("error", "validation_error")
        assert refused["detail"]
        client.send("ping")
        assert client.receive() == {"type": "pong"}
    assert not server.rows("select 1 from turns where user_id = $1", server.person.id)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("content", ""),
        ("content", " \n"),
        ("content", "a\x00b"),
        ("content", "x" * 100_001),
        ("request_id", ""),
        ("request_id", "r" * 201),
        ("request_id", "r\x00"),
        ("attachments", [{"name": "a.png"}]),
    ],
)
def test_a_message_that_is_not_acceptable_is_refused_by_its_field(
    server: Server, field: str, value: Any
) -> None:
    with Client(server.ws_url, server.key) as client:
        client.send("message", **{"request_id": "r1", "content": "fine", field: value})
        refused = client.receive()
        assert (refused["type"], refused["code"]) == ("error", "validation_error")
        assert field in refused["detail"].lower()
        assert refused["request_id"] == ("r1" if field != "request_id" else value)
        assert client.ask("still here", "r2") == "still here"
    assert len(server.rows("select 1 from turns where user_id = $1", server.person.id)) == 1


def test_a_frame_that_is_wrong_names_the_request_that_it_was(server: Server) -> None:
    with Client(server.ws_url, server.key) as client:
        client.send("message", request_id="r1", content=5)
        assert client.receive()["request_id"] == "r1"


def test_a_request_id_cannot_stand_for_other_words(server: Server) -> None:
    with Client(server.ws_url, server.key) as client:
        client.ask("one", "r1")
        refused = client.say("two", "r1")
        assert (refused["type"], refused["code"]) == ("error", "conflict")
        assert refused["request_id"] == "r1"
    assert len(server.rows("select 1 from turns where user_id = $1", server.person.id)) == 1


def test_binary_frames_are_refused_and_the_connection_stays(server: Server) -> None:
    with Client(server.ws_url, server.key) as client:
        for data in (b"", b"\x00\xff", json.dumps({"type": "ping"}).encode()):
            client.socket.send(data)
            assert client.receive()["code"] == "validation_error"
        client.send("ping")
        assert client.receive() == {"type": "pong"}


@pytest.mark.parametrize("size", [600_000, 5_000_000])
def test_a_frame_that_is_too_large_closes_the_connection(server: Server, size: int) -> None:
    with Client(server.ws_url, server.key) as client:
        client.send("message", request_id="r1", content="x" * size)
        _, code = closed_with(client.socket)
    assert code == 1009
    assert not server.rows("select 1 from turns where user_id = $1", server.person.id)


def test_text_that_is_no_utf_8_closes_the_connection(server: Server) -> None:
    with Client(server.ws_url, server.key) as client:
        client.socket.send(b'{"type": "ping", "x": "\xff"}', text=True)
        _, code = closed_with(client.socket)
    assert code in (None, 1007)
    with Client(server.ws_url, server.key) as client:
        assert client.ask("still here", "r1") == "still here"


def test_a_flood_closes_the_connection(strict: Server) -> None:
    with Client(strict.ws_url, strict.key) as client:
        for _ in range(30):
            client.send("ping")
        told, code = closed_with(client.socket)
    assert code == 1008
    assert (told[-1]["type"], told[-1]["code"]) == ("error", "rate_limited")
    assert [frame["type"] for frame in told[:-1]] == ["pong"] * 20


@pytest.mark.parametrize("key", ["mira_" + "A" * 43, "wrong", ""])
def test_a_wrong_key_is_told_and_the_connection_closed(server: Server, key: str) -> None:
    with connect(server.ws_url) as socket:
        socket.send(json.dumps({"type": "auth", "key": key}))
        told, code = closed_with(socket)
    assert [frame["code"] for frame in told] == ["unauthorized"]
    assert code == 4401


def test_a_wrong_key_in_the_header_is_told_too(server: Server) -> None:
    with connect(server.ws_url, additional_headers={"authorization": "Bearer mira_x"}) as socket:
        told, code = closed_with(socket)
    assert [frame["code"] for frame in told] == ["unauthorized"]
    assert code == 4401


def test_before_the_key_nothing_else_is_done(strict: Server) -> None:
    with connect(strict.ws_url) as socket:
        socket.send(json.dumps({"type": "message", "request_id": "r1", "content": "x"}))
        assert json.loads(socket.recv(20))["code"] == "unauthorized"
        socket.send("nonsense")
        assert json.loads(socket.recv(20))["code"] == "validation_error"
        told, code = closed_with(socket)
    assert [frame["code"] for frame in told] == ["unauthorized"]
    assert code == 4401
    assert not strict.rows("select 1 from turns where request_id = 'r1'")


def test_revoking_a_key_closes_its_connections_at_once(server: Server) -> None:
    with http(server.url, server.admin_key) as admin:
        new = admin.post("/v1/keys", json={"name": "lost", "scope": "chat"}).json()
        with (
            Client(server.ws_url, new["key"]) as client,
            Client(server.ws_url, server.key) as other,
        ):
            admin.delete(f"/v1/keys/{new['id']}")
            told, code = closed_with(client.socket)
            assert [frame["code"] for frame in told] == ["unauthorized"]
            assert code == 4401
            other.send("ping")
            assert other.receive()["type"] == "pong"


def test_signing_out_closes_the_connections_of_the_session(server: Server) -> None:
    with http(server.url) as browser:
        browser.get(server.signin_link())
        cookie = f"mira_session={browser.cookies['mira_session']}"
        with connect(server.ws_url, additional_headers={"cookie": cookie}) as socket:
            assert json.loads(socket.recv(20))["type"] == "ready"
            browser.post("/v1/session/logout", headers={"origin": server.url})
            _, code = closed_with(socket)
    assert code == 4401


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "x"])
def test_a_page_of_another_origin_is_not_let_in(server: Server, origin: str) -> None:
    headers = {"authorization": f"Bearer {server.key}"}
    with pytest.raises(InvalidStatus) as refused:
        connect(server.ws_url, additional_headers=headers, origin=Origin(origin))
    response = refused.value.response
    assert response.status_code == 403
    assert json.loads(response.body or b"")["code"] == "forbidden"


def test_a_frame_for_signing_in_is_refused_once_signed_in(server: Server) -> None:
    with Client(server.ws_url, server.key) as client:
        client.send("auth", key=server.admin_key)
        assert client.receive()["code"] == "conflict"


def test_one_user_has_so_many_connections_and_no_more(strict: Server) -> None:
    with (
        Client(strict.ws_url, strict.key),
        Client(strict.ws_url, strict.key),
        Client(strict.ws_url, strict.key),
    ):
        headers = {"authorization": f"Bearer {strict.key}"}
        with connect(strict.ws_url, additional_headers=headers) as socket:
            told, code = closed_with(socket)
        assert [frame["code"] for frame in told] == ["rate_limited"]
        assert code == 1013
        with Client(strict.ws_url, strict.neighbour().key) as other:
            assert other.ready
    with Client(strict.ws_url, strict.key) as again:
        assert again.ready
