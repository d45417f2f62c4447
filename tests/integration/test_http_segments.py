"""Segments over HTTP: listed, read, paused, resumed, ended; and the prompt as it stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from mira.ids import SystemIds
from tests.conftest import Server, uid
from tests.support.segments import PRECIS, SAID, SCRIPT, TITLE, TRACE, summarised
from tests.support.web import http, problem

STEERING = ("pause", "resume", "collapse")


@pytest.fixture
def client(server: Server) -> Iterator[httpx2.Client]:
    """The user's own client; the models write a summary when they are asked for one."""
    server.double.script(SCRIPT)
    with http(server.url, server.key) as opened:
        yield opened


def say(client: httpx2.Client, words: str = SAID) -> dict[str, Any]:
    answer: dict[str, Any] = client.post("/v1/chat", json={"message": words}).json()
    return answer


def steer(client: httpx2.Client, act: str) -> dict[str, Any]:
    answer = client.post(f"/v1/segments/active/{act}")
    assert answer.status_code == 200, answer.text
    segment: dict[str, Any] = answer.json()
    return segment


def old_segments(server: Server, count: int) -> list[str]:
    """Segments that ended long ago, one each day; their ids, newest first."""
    ids = [SystemIds().new() for _ in range(count)]
    for day, segment_id in enumerate(ids):
        server.rows(
            "insert into segments (id, user_id, state, opened_at, last_message_at, collapsed_at) "
            "values ($1, $2, 'collapsed', timestamptz '2025-01-01Z' + make_interval(days => $3), "
            "timestamptz '2025-01-01Z' + make_interval(days => $3), now())",
            segment_id, server.person.id, day,
        )  # fmt: skip
    return [str(one) for one in reversed(ids)]


def test_a_segment_that_is_ended_gets_its_summary_by_itself(
    server: Server, client: httpx2.Client
) -> None:
    say(client)
    ended = steer(client, "collapse")
    assert (ended["state"], ended["summary"]) == ("collapsing", None)
    segment = summarised(client, ended["id"])
    summary = segment["summary"]
    assert segment["title"] == TITLE
    assert (summary["trace"], summary["precis"], summary["complexity"]) == (TRACE, PRECIS, 2.0)
    assert 0 <= summary["drift"] <= 1
    assert (summary["provider"], summary["model"]) == ("anthropic", "keeper")
    assert segment["collapsed_at"] >= segment["last_message_at"] >= segment["opened_at"]
    (listed,) = client.get("/v1/segments").json()["segments"]
    assert listed == segment


def test_the_next_message_opens_another_segment(server: Server, client: httpx2.Client) -> None:
    say(client)
    first = steer(client, "collapse")["id"]
    say(client, "Good morning.")
    newest, older = client.get("/v1/segments").json()["segments"]
    assert (older["id"], newest["state"]) == (first, "active")


def test_a_pause_holds_until_it_is_ended_or_somebody_speaks(client: httpx2.Client) -> None:
    say(client)
    assert steer(client, "pause")["state"] == "paused"
    assert steer(client, "resume")["state"] == "active"
    steer(client, "pause")
    say(client, "I am back.")
    (segment,) = client.get("/v1/segments").json()["segments"]
    assert segment["state"] == "active"


@pytest.mark.parametrize("act", STEERING)
def test_where_none_is_open_there_is_nothing_to_steer(client: httpx2.Client, act: str) -> None:
    path = f"/v1/segments/active/{act}"
    assert "open" in problem(client.post(path), 404, "not_found")["detail"]
    say(client)
    steer(client, "collapse")
    problem(client.post(path), 404, "not_found")


@pytest.mark.parametrize("act", STEERING)
def test_a_key_that_only_reads_may_not_steer(
    server: Server, client: httpx2.Client, act: str
) -> None:
    say(client)
    with http(server.url, server.read_key) as reader:
        problem(reader.post(f"/v1/segments/active/{act}"), 403, "forbidden")
        (segment,) = reader.get("/v1/segments").json()["segments"]
    assert segment["state"] == "active"


def test_segments_come_in_pages_newest_first_that_neither_repeat_nor_skip(
    server: Server, client: httpx2.Client
) -> None:
    expected = old_segments(server, 7)
    for limit in (1, 3, 7, 50):
        found: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            page = client.get("/v1/segments", params={"limit": limit, **cursor}).json()
            found += [one["id"] for one in page["segments"]]
            assert 0 < len(page["segments"]) <= limit
            if page["next_cursor"] is None:
                break
            cursor = {"cursor": page["next_cursor"]}
        assert found == expected


@pytest.mark.parametrize("cursor", ["x", "WzFd.", "WyJ4IiwieSJd"])
def test_a_cursor_that_was_made_up_is_refused(client: httpx2.Client, cursor: str) -> None:
    problem(client.get("/v1/segments", params={"cursor": cursor}), 422, "validation_error")


def test_another_user_s_segment_is_not_there(server: Server, client: httpx2.Client) -> None:
    say(client)
    (segment,) = client.get("/v1/segments").json()["segments"]
    with http(server.url, server.neighbour().key) as neighbour:
        problem(neighbour.get(f"/v1/segments/{segment['id']}"), 404, "not_found")
        assert neighbour.get("/v1/segments").json()["segments"] == []
        problem(neighbour.post("/v1/segments/active/collapse"), 404, "not_found")
        assert neighbour.get("/v1/working-memory").json() == {"sections": []}
    assert client.get(f"/v1/segments/{segment['id']}").json() == segment


def test_what_is_no_segment_is_not_found(client: httpx2.Client) -> None:
    for name in (str(uid(1)), "x", "active"):
        problem(client.get(f"/v1/segments/{name}"), 404, "not_found")


def test_the_prompt_as_it_was_sent_can_be_read(server: Server, client: httpx2.Client) -> None:
    assert client.get("/v1/working-memory").json() == {"sections": []}
    turn_id = say(client)["turn_id"]
    with http(server.url, server.read_key) as reader:
        sections = reader.get("/v1/working-memory").json()["sections"]
    placements = [one["placement"] for one in sections]
    assert placements[0] == "system"
    assert placements[-1] == "hud"
    for one in sections:
        assert one["turn_id"] == turn_id
        assert one["error"] is None
        assert one["tokens"] > 0
        assert one["text"]
    trace = client.get(f"/v1/turns/{turn_id}/trace").json()
    assert [one["name"] for one in trace["account"]["sections"]] == [
        one["name"] for one in sections
    ]


def test_a_message_that_a_trace_names_can_be_read_by_its_user_alone(
    server: Server, client: httpx2.Client
) -> None:
    say(client)
    newest = client.get("/v1/messages?limit=1").json()["messages"][0]
    assert client.get(f"/v1/messages/{newest['id']}").json() == newest
    problem(client.get(f"/v1/messages/{uid(1)}"), 404, "not_found")
    with http(server.url, server.neighbour().key) as neighbour:
        problem(neighbour.get(f"/v1/messages/{newest['id']}"), 404, "not_found")


def test_the_status_says_how_true_summaries_are_and_which_are_overdue(
    server: Server, client: httpx2.Client
) -> None:
    overdue, other = old_segments(server, 2)
    server.rows(
        "update segments set state = 'collapsing', collapsed_at = null, "
        "collapsing_at = now() - interval '25 hours' where id = $1",
        overdue,
    )
    server.rows(
        "insert into summaries (segment_id, user_id, title, trace, precis, complexity, parts, "
        "drift, made_at) values ($1, $2, 't', 't', 'p', 1, 1, 0.25, now())",
        other, server.person.id,
    )  # fmt: skip
    with http(server.url, server.admin_key) as operator:
        summaries = operator.get("/v1/status").json()["summaries"]
    assert (summaries["looked_at"], summaries["mean_drift"]) == (1, 0.25)
    assert (summaries["worst_drift"], summaries["worst"]) == (0.25, other)
    assert [one["id"] for one in summaries["overdue"]] == [overdue]


def failed(server: Server) -> str:
    """A segment that ended, whose summary failed three times and waits for another day."""
    (segment_id,) = old_segments(server, 1)
    server.rows(
        "update segments set state = 'collapsing', collapsed_at = null, collapsing_at = now() "
        "where id = $1",
        segment_id,
    )
    server.rows(
        "insert into outbox (user_id, kind, address, lane, key, payload, due_at, created_at) "
        "values ($1, 'memory_keeper', $1::uuid::text, 'summaries/' || $2::text, $2, "
        "jsonb_build_object('type', 'SummariseSegment', 'segment_id', $2, 'failed', 3), "
        "now() + interval '20 hours', now())",
        server.person.id, segment_id,
    )  # fmt: skip
    return segment_id


def test_a_summary_that_failed_is_told_of_and_made_when_it_is_asked_for(
    server: Server, client: httpx2.Client
) -> None:
    segment_id = failed(server)
    path = f"/v1/segments/{segment_id}"
    segment = client.get(path).json()
    assert segment["summary"] is None
    assert (segment["trouble"]["failures"], segment["trouble"]["unreached"]) == (3, False)
    assert segment["trouble"]["next_try_at"] > segment["last_message_at"]
    assert client.get("/v1/segments").json()["segments"] == [segment]
    for _ in range(2):
        # The second may come after it was made.
        assert client.post(f"{path}/retry").status_code in (200, 409)
    made = summarised(client, segment_id)
    assert (made["trouble"], made["summary"] is not None) == (None, True)
    problem(client.post(f"{path}/retry"), 409, "conflict")


def test_what_has_not_failed_is_not_tried_again(server: Server, client: httpx2.Client) -> None:
    say(client)
    (segment,) = client.get("/v1/segments").json()["segments"]
    assert segment["trouble"] is None
    path = f"/v1/segments/{segment['id']}/retry"
    assert "open" in problem(client.post(path), 409, "conflict")["detail"]
    for name in (str(uid(1)), "x"):
        problem(client.post(f"/v1/segments/{name}/retry"), 404, "not_found")
    other = failed(server)
    with http(server.url, server.read_key) as reader:
        problem(reader.post(f"/v1/segments/{other}/retry"), 403, "forbidden")
    with http(server.url, server.neighbour().key) as neighbour:
        problem(neighbour.post(f"/v1/segments/{other}/retry"), 404, "not_found")
    assert client.get(f"/v1/segments/{other}").json()["trouble"]["failures"] == 3
