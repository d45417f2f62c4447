"""Going back from a summary to what was said: messages of a time or of a segment, word for word."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest

from tests.conftest import Server, uid
from tests.support.segments import SCRIPT, TRACE, summarised
from tests.support.web import http, problem

#: Neither what a summary would keep nor what JSON and SQL leave alone by themselves.
ODD = [
    "Rex  barked\ttwice; 'twas «loud» \\u0041 🐕\n\nand then %s $1",
    "  a second  line\n",
    "third",
]


def read(
    client: httpx2.Client, limit: int = 200, *, since: str | None = None, **asked: str
) -> list[dict[str, Any]]:
    """All messages that are asked for, oldest first, read in pages of `limit`."""
    found: list[dict[str, Any]] = []
    query = {**asked, "limit": str(limit)}
    if since is not None:
        query["from"] = since
    while True:
        answer = client.get("/v1/messages?" + urlencode(query))
        assert answer.status_code == 200, answer.text
        page = answer.json()
        assert len(page["messages"]) <= limit
        found += page["messages"]
        if page["next_cursor"] is None:
            return found[::-1]
        query["cursor"] = page["next_cursor"]


def words(messages: list[dict[str, Any]]) -> list[str]:
    return [one["text"] for one in messages if one["role"] == "user"]


def test_a_segment_that_has_become_a_summary_is_read_word_for_word(server: Server) -> None:
    server.double.script(SCRIPT)
    with http(server.url, server.key) as client:
        for one in ODD:
            client.post("/v1/chat", json={"message": one})
        first = client.post("/v1/segments/active/collapse").json()["id"]
        assert summarised(client, first)["summary"]["trace"] == TRACE
        client.post("/v1/chat", json={"message": "a new day"})
        second = client.get("/v1/segments").json()["segments"][0]["id"]
        every = read(client)
        for limit in (1, 4, 6, 200):
            assert read(client, limit, segment_id=first) == every[:6]
        assert words(every[:6]) == ODD
        assert read(client, segment_id=second) == every[6:]
        assert read(client, segment_id=str(uid(1))) == []


def test_a_stretch_of_time_holds_its_beginning_and_not_its_end(server: Server) -> None:
    with http(server.url, server.key) as client:
        for n in range(4):
            client.post("/v1/chat", json={"message": f"message {n}"})
        every = read(client)
        times = [one["created_at"] for one in every]
        assert len(set(times)) == len(times)
        for limit in (1, 2, 200):
            assert read(client, limit, since=times[2], to=times[6]) == every[2:6]
        assert read(client, since=times[5]) == every[5:]
        assert read(client, to=times[5]) == every[:5]
        # The same moments as another place on earth writes them.
        there = datetime.fromisoformat(times[2]).astimezone(UTC).isoformat()
        assert read(client, since=there) == every[2:]


def test_a_segment_and_a_time_together_narrow_each_other(server: Server) -> None:
    server.double.script(SCRIPT)
    with http(server.url, server.key) as client:
        client.post("/v1/chat", json={"message": "one"})
        client.post("/v1/chat", json={"message": "two"})
        first = client.post("/v1/segments/active/collapse").json()["id"]
        client.post("/v1/chat", json={"message": "three"})
        every = read(client)
        assert words(read(client, segment_id=first, since=every[2]["created_at"])) == ["two"]


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ("from=2026-01-05T09:00:00", "from"),
        ("to=yesterday", "to"),
        ("from=2026-01-05T09:00:00Z&to=2026-01-05T09:00:00Z", "from"),
        ("to=9999-12-31T23:00:00-05:00", "to"),
        ("segment_id=7", "segment_id"),
    ],
)
def test_a_range_that_is_none_is_refused_by_its_name(
    server: Server, asked: str, field: str
) -> None:
    with http(server.url, server.key) as client:
        told = problem(client.get(f"/v1/messages?{asked}"), 422, "validation_error")
    assert field in str(told)


def test_nobody_reads_a_segment_of_somebody_else(server: Server) -> None:
    with http(server.url, server.key) as client:
        client.post("/v1/chat", json={"message": "mine"})
        segment_id = client.get("/v1/segments").json()["segments"][0]["id"]
    with http(server.url, server.neighbour().key) as client:
        assert read(client, segment_id=segment_id) == []
        assert read(client, since="2020-01-01T00:00:00Z") == []
