"""Talking over the WebSocket."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.typing import Origin

from tests.conftest import Server
from tests.support.client import CLOSING, Client, spoken
from tests.support.processes import ServerProcess
from tests.support.web import http


def numbers(frames: list[dict[str, Any]]) -> list[int]:
    return [frame["seq"] for frame in frames if "seq" in frame]


def rise(found: list[int]) -> bool:
    return found == sorted(set(found))


def test_a_message_is_accepted_and_then_answered_in_numbered_events(server: Server) -> None:
    server.double.script({"default": {"tokens": 30, "token_ms": 5}})
    with Client(server.ws_url, server.key) as client:
        assert client.ready == {
            "type": "ready",
            "user_id": str(server.person.id),
            "active_turn": None,
            "queued": [],
            "confirmations": [],
            "notifications": [],
        }
        client.send("message", request_id="r1", content="go")
        accepted, *told = client.until(*CLOSING)
    assert accepted["type"] == "accepted"
    assert accepted["request_id"] == "r1"
    assert accepted["duplicate"] is False
    assert {frame["turn_id"] for frame in told} == {accepted["turn_id"]}
    assert told[-1]["type"] == "complete"
    assert {frame["type"] for frame in told[:-1]} == {"text"}
    assert rise(numbers(told))
    assert spoken(told) == told[-1]["reply"]
    assert told[-1]["usage"]["calls"] == 1
    assert told[-1]["timings"]["first_text_ms"] > 0


def test_a_key_can_be_sent_as_the_first_frame(server: Server) -> None:
    with connect(server.ws_url) as socket:
        socket.send(json.dumps({"type": "auth", "key": server.key}))
        ready = json.loads(socket.recv(20))
    assert (ready["type"], ready["user_id"]) == ("ready", str(server.person.id))


def test_a_page_that_is_signed_in_needs_no_key(server: Server) -> None:
    with http(server.url) as browser:
        browser.get(server.signin_link())
        cookie = f"mira_session={browser.cookies['mira_session']}"
    headers = {"cookie": cookie}
    with connect(server.ws_url, additional_headers=headers, origin=Origin(server.url)) as socket:
        assert json.loads(socket.recv(20))["type"] == "ready"


def test_every_device_of_a_user_sees_the_same_turn_live(server: Server) -> None:
    server.double.script({"default": {"tokens": 20, "token_ms": 10}})
    with (
        Client(server.ws_url, server.key) as sender,
        Client(server.ws_url, server.key) as second,
        Client(server.ws_url, server.read_key) as reader,
    ):
        sender.send("message", request_id="r1", content="for all")
        accepted, *own = sender.until(*CLOSING)
        assert accepted["type"] == "accepted"
        for other in (second, reader):
            begun, *seen = other.until(*CLOSING)
            assert (begun["type"], begun["content"]) == ("turn", "for all")
            assert begun["turn_id"] == accepted["turn_id"]
            assert spoken(seen) == spoken(own) == own[-1]["reply"]
            assert seen[-1] == own[-1]
            assert rise(numbers(seen))


def test_a_turn_begun_over_http_is_seen_on_the_websocket(server: Server) -> None:
    with Client(server.ws_url, server.key) as client, http(server.url, server.key) as other:
        other.post("/v1/chat", json={"message": "from elsewhere"})
        begun, *told = client.until(*CLOSING)
    assert (begun["type"], begun["content"]) == ("turn", "from elsewhere")
    assert told[-1]["reply"] == "from elsewhere"


def test_messages_sent_at_once_are_answered_one_after_another_in_order(server: Server) -> None:
    with Client(server.ws_url, server.key) as client:
        for n in range(5):
            client.send("message", request_id=f"r{n}", content=f"message {n}")
        frames: list[dict[str, Any]] = []
        while sum(frame["type"] == "complete" for frame in frames) < 5:
            frames.append(client.receive())
    accepted = [frame["turn_id"] for frame in frames if frame["type"] == "accepted"]
    completed = [frame for frame in frames if frame["type"] == "complete"]
    assert [frame["turn_id"] for frame in completed] == accepted
    assert [frame["reply"] for frame in completed] == [f"message {n}" for n in range(5)]
    for turn_id in accepted:
        of_turn = [f["type"] for f in frames if f.get("turn_id") == turn_id]
        assert of_turn[0] == "accepted"


def test_a_message_sent_twice_is_one_turn_and_its_answer_is_told_again(server: Server) -> None:
    with Client(server.ws_url, server.key) as client:
        first = client.ask("once", "r1")
        again = client.say("once", "r1")
        assert again["duplicate"] is True
        assert client.until(*CLOSING)[-1]["reply"] == first
    assert len(server.double.requests()) == 1


def test_a_message_sent_twice_while_it_is_answered_is_told_once(server: Server) -> None:
    server.double.script({"default": {"tokens": 20, "token_ms": 20}})
    with Client(server.ws_url, server.key) as client:
        for _ in range(2):
            client.send("message", request_id="r1", content="once")
        frames = client.until(*CLOSING)
        client.send("ping")
        assert client.receive()["type"] == "pong"
    assert [f["duplicate"] for f in frames if f["type"] == "accepted"] == [False, True]
    assert rise(numbers(frames))
    assert spoken(frames) == frames[-1]["reply"]


def test_a_turn_is_cancelled(server: Server) -> None:
    endless = {"tokens": 500, "token_ms": 20}
    server.double.script({"default": {"echo": True}, "queue": [endless]})
    with Client(server.ws_url, server.key) as client:
        turn_id = client.say("stop me", "r1")["turn_id"]
        told = client.until("text")
        client.send("cancel", turn_id=turn_id)
        told += client.until(*CLOSING)
        assert told[-1]["type"] == "cancelled"
        assert told[-1]["text"] == spoken(told)
        assert client.ask("and now", "r2") == "and now"


def test_a_waiting_turn_is_cancelled_before_it_begins(server: Server) -> None:
    server.double.script({"default": {"tokens": 40, "token_ms": 20}})
    with Client(server.ws_url, server.key) as client:
        client.say("first", "r1")
        second = client.say("second", "r2")["turn_id"]
        client.send("cancel", turn_id=second)
        assert client.until("complete")[-1]["turn_id"] != second
        end = client.until(*CLOSING)[-1]
        assert (end["type"], end["turn_id"], end["text"]) == ("cancelled", second, "")
    assert len(server.double.requests()) == 1


def test_a_failed_turn_is_tried_again_as_the_same_turn(server: Server) -> None:
    failure = {"error": {"status": 400, "type": "invalid_request_error"}}
    server.double.script({"default": {"echo": True}, "queue": [failure]})
    with Client(server.ws_url, server.key) as client:
        turn_id = client.say("again", "r1")["turn_id"]
        failed = client.until(*CLOSING)[-1]
        assert (failed["type"], failed["code"], failed["retry"]) == (
            "error",
            "provider_error",
            True,
        )
        client.send("retry", turn_id=turn_id)
        accepted, *told = client.until("complete")
        assert (accepted["type"], accepted["turn_id"]) == ("accepted", turn_id)
        assert {frame["attempt"] for frame in told} == {failed["attempt"] + 1}
        assert min(numbers(told)) > failed["seq"]
        assert told[-1]["reply"] == "again"
        client.send("retry", turn_id=turn_id)
        refused = client.receive()
        assert (refused["type"], refused["code"]) == ("error", "conflict")
        assert refused["turn_id"] == turn_id


def test_a_client_that_leaves_and_comes_back_continues_without_gap_or_repetition(
    server: Server,
) -> None:
    server.double.script({"default": {"tokens": 80, "token_ms": 20}})
    with Client(server.ws_url, server.key) as client:
        client.send("message", request_id="r1", content="long")
        seen = client.until("accepted")
        while len(numbers(seen)) < 6:
            seen.append(client.receive())
    turn_id, after = seen[-1]["turn_id"], seen[-1]["seq"]
    with Client(server.ws_url, server.key) as back:
        assert back.ready["active_turn"]["turn_id"] == turn_id
        back.send("resume", turn_id=turn_id, after=after)
        seen += back.until(*CLOSING)
    assert rise(numbers(seen))
    assert spoken(seen) == seen[-1]["reply"]
    assert len(seen[-1]["reply"].split()) == 80


def test_a_device_that_comes_while_a_turn_runs_sees_all_of_it_without_asking(
    server: Server,
) -> None:
    server.double.script({"default": {"tokens": 80, "token_ms": 20}})
    with Client(server.ws_url, server.key) as client:
        client.say("long", "r1")
        client.until("text")
        with Client(server.ws_url, server.read_key) as late:
            assert late.ready["active_turn"]["content"] == "long"
            told = late.until(*CLOSING)
        assert client.until(*CLOSING)[-1] == told[-1]
    assert rise(numbers(told))
    assert spoken(told) == told[-1]["reply"]


def test_a_turn_that_is_over_can_be_resumed_and_one_that_is_none_cannot(server: Server) -> None:
    with Client(server.ws_url, server.key) as client:
        reply = client.ask("over", "r1")
        with http(server.url, server.key) as reading:
            turn_id = reading.get("/v1/turns").json()["turns"][0]["id"]
        client.send("resume", turn_id=turn_id, after=0)
        assert spoken(client.until(*CLOSING)) == reply
        missing = turn_id[:-4] + "0000"
        client.send("resume", turn_id=missing, after=0)
        refused = client.receive()
        assert (refused["code"], refused["turn_id"]) == ("not_found", missing)


def test_a_call_that_needs_confirmation_waits_for_the_user_on_every_device(server: Server) -> None:
    call = {"tools": [{"name": "send", "arguments": {"text": "a letter"}}]}
    server.double.script({"default": {"text": "As you wish."}, "queue": [call]})
    with Client(server.ws_url, server.key) as client, Client(server.ws_url, server.key) as second:
        client.say("send it", "r1")
        told = client.until("complete")
        asked = [f for f in told if f["type"] == "confirm"] or client.until("confirm")
        assert (asked[-1]["tool"], json.loads(asked[-1]["call"])) == ("send", {"text": "a letter"})
        assert asked[-1] in second.until("confirm")
        with Client(server.ws_url, server.key) as late:
            (waiting,) = late.ready["confirmations"]
            assert waiting["action_id"] == asked[-1]["action_id"]
        client.send("confirm", action_id=asked[-1]["action_id"], allow=True)
        assert client.until("complete")[-1]["reply"] == "As you wish."
        client.send("confirm", action_id=asked[-1]["action_id"], allow=False)
        assert client.receive()["code"] == "conflict"


def test_a_ping_is_answered_and_there_is_nothing_to_acknowledge_yet(server: Server) -> None:
    with Client(server.ws_url, server.key) as client:
        client.send("ping")
        assert client.receive() == {"type": "pong"}
        client.send("ack", id=str(server.person.id))
        assert client.receive()["code"] == "not_found"


def test_a_key_for_reading_hears_but_does_not_speak(server: Server) -> None:
    with Client(server.ws_url, server.read_key) as client:
        nobody = str(server.person.id)
        for frame in (
            {"type_": "message", "request_id": "r1", "content": "x"},
            {"type_": "cancel", "turn_id": nobody},
            {"type_": "retry", "turn_id": nobody},
            {"type_": "confirm", "action_id": nobody, "allow": True},
        ):
            client.send(**frame)
            assert client.receive()["code"] == "forbidden"
        client.send("ping")
        assert client.receive()["type"] == "pong"


def test_a_server_that_stops_says_so_and_when_to_come_back(fresh_server: ServerProcess) -> None:
    fresh_server.start()
    ws_url = "ws" + fresh_server.url.removeprefix("http") + "/v1/ws"
    with Client(ws_url, fresh_server.admin_token) as client:
        fresh_server.signal(signal.SIGTERM)
        told = client.receive()
        assert told["type"] == "shutdown"
        assert told["reconnect_after"] > 0
        with pytest.raises(ConnectionClosed) as closed:
            client.receive()
    assert closed.value.rcvd
    assert closed.value.rcvd.code == 1001
    assert fresh_server.wait(60) == 0
    assert "Traceback" not in fresh_server.output()
