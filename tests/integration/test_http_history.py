"""Reading back: messages, turns and segments, in pages; one conversation."""

from __future__ import annotations

from typing import Any

import httpx2

from tests.conftest import Server
from tests.support.client import Client
from tests.support.web import http


def pages(client: httpx2.Client, path: str, name: str, limit: int) -> list[list[dict[str, Any]]]:
    found, cursor = [], None
    while True:
        query = f"?limit={limit}" + (f"&cursor={cursor}" if cursor else "")
        page = client.get(path + query).json()
        found.append(page[name])
        cursor = page["next_cursor"]
        if cursor is None:
            return found


def test_there_is_one_conversation_and_asking_for_another_returns_it(server: Server) -> None:
    with http(server.url, server.key) as client:
        first = client.post("/v1/conversation")
        assert first.status_code == 200
        client.post("/v1/chat", json={"message": "hello"})
        second = client.post("/v1/conversation", json={"title": "a new one, please"})
        assert second.json()["id"] == first.json()["id"]
        assert (first.json()["use_days"], second.json()["use_days"]) == (0, 1)


def test_messages_are_read_newest_first_in_pages_that_neither_repeat_nor_skip(
    server: Server,
) -> None:
    with Client(server.ws_url, server.key) as talk:
        for n in range(5):
            talk.ask(f"message {n}", f"r{n}")
    expected = [f"message {n}" for n in range(4, -1, -1) for _ in range(2)]
    with http(server.url, server.read_key) as client:
        for limit in (1, 3, 10, 11, 200):
            found = pages(client, "/v1/messages", "messages", limit)
            assert all(len(page) == limit for page in found[:-1])
            assert 0 < len(found[-1]) <= limit
            flat = [message for page in found for message in page]
            assert [m["text"] for m in flat] == expected
            assert [m["role"] for m in flat] == ["assistant", "user"] * 5
            assert len({m["id"] for m in flat}) == 10


def test_what_is_said_while_paging_does_not_disturb_the_pages(server: Server) -> None:
    with http(server.url, server.key) as client:
        for n in range(3):
            client.post("/v1/chat", json={"message": f"message {n}"})
        first = client.get("/v1/messages?limit=2").json()
        client.post("/v1/chat", json={"message": "meanwhile"})
        rest = client.get(f"/v1/messages?limit=10&cursor={first['next_cursor']}").json()
    assert [m["text"] for m in rest["messages"]] == ["message 1"] * 2 + ["message 0"] * 2


def test_turns_are_read_newest_first_in_pages(server: Server) -> None:
    with http(server.url, server.key) as client:
        for n in range(5):
            client.post("/v1/chat", json={"message": "x", "request_id": f"r{n}"})
        for limit in (2, 5, 50):
            flat = [t for page in pages(client, "/v1/turns", "turns", limit) for t in page]
            assert [turn["request_id"] for turn in flat] == ["r4", "r3", "r2", "r1", "r0"]
            assert [turn["seq"] for turn in flat] == [5, 4, 3, 2, 1]
            assert {turn["state"] for turn in flat} == {"complete"}


def test_the_segment_that_is_open_is_listed_and_read(server: Server) -> None:
    with http(server.url, server.key) as client:
        assert client.get("/v1/segments").json() == {"segments": [], "next_cursor": None}
        client.post("/v1/chat", json={"message": "x"})
        (segment,) = client.get("/v1/segments").json()["segments"]
        assert segment["state"] == "active"
        assert client.get(f"/v1/segments/{segment['id']}").json() == segment
        (turn,) = client.get("/v1/turns").json()["turns"]
        assert turn["segment_id"] == segment["id"]


def test_the_head_of_a_resource_is_that_of_the_resource(server: Server) -> None:
    with http(server.url, server.key) as client:
        head = client.head("/v1/messages")
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"] == "application/json"
        assert head.headers["cache-control"] == "no-store"
