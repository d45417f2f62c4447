"""Memories over HTTP: written, read, changed, archived, linked, merged, undone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import httpx2
import pytest

from mira.ids import SystemIds
from tests.conftest import Server
from tests.support.web import http, problem

FACT = "Ada keeps bees on the roof of the library"
OTHER = "Bob plays the cello in a quartet on Thursdays"
UNKNOWN = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
def client(server: Server) -> Iterator[httpx2.Client]:
    with http(server.url, server.key) as opened:
        yield opened


def remember(client: httpx2.Client, text: str = FACT, **fields: Any) -> dict[str, Any]:
    answer = client.post("/v1/memories", json={"text": text, **fields})
    assert answer.status_code == 200, answer.text
    memory: dict[str, Any] = answer.json()["memory"]
    return memory


def history(client: httpx2.Client, memory: dict[str, Any]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = client.get(f"/v1/memories/{memory['id']}/events").json()[
        "events"
    ]
    return events


# Writing and reading.


def test_what_is_remembered_is_read_by_its_id_and_by_its_short_id(client: httpx2.Client) -> None:
    memory = remember(
        client,
        happens_at="2026-12-24T18:00:00+01:00",
        entities=[{"name": "Ada", "type": "PERSON"}, {"name": "the library"}],
    )
    assert memory["source"] == "user"
    assert memory["happens_at"] == "2026-12-24T17:00:00Z"
    assert memory["shared"] is False
    assert {"name": "Ada", "type": "PERSON"} in memory["entities"]
    for name in (memory["id"], memory["short_id"]):
        found = client.get(f"/v1/memories/{name}").json()
        assert {key: found[key] for key in memory} == memory
        assert found["evidence"] == {
            "segment": None,
            "turn_id": None,
            "messages": [],
            "memories": [],
        }


def test_saying_it_again_reinforces_it_instead_of_storing_it_twice(client: httpx2.Client) -> None:
    first = client.post("/v1/memories", json={"text": FACT}).json()
    again = client.post("/v1/memories", json={"text": FACT}).json()
    assert (first["outcome"], again["outcome"]) == ("created", "reinforced")
    assert again["memory"]["id"] == first["memory"]["id"]
    assert again["memory"]["mention_count"] == first["memory"]["mention_count"] + 1
    assert len(client.get("/v1/memories").json()["memories"]) == 1


def test_pages_follow_each_other_in_either_order_without_gap_or_repeat(
    client: httpx2.Client,
) -> None:
    words = ["apples", "bridges", "cellos", "dragons", "engines", "ferries", "gardens"]
    made = [remember(client, f"The seventh {word} of the town were counted") for word in words]
    for order in ("recent", "importance"):
        seen: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            query = {"order": order, "limit": 3, **cursor}
            page = client.get("/v1/memories", params=query).json()
            seen += [memory["id"] for memory in page["memories"]]
            if page["next_cursor"] is None:
                break
            cursor = {"cursor": page["next_cursor"]}
        assert sorted(seen) == sorted(memory["id"] for memory in made)
        if order == "recent":
            assert seen == [memory["id"] for memory in reversed(made)]


def test_a_memory_of_the_conversation_shows_what_was_said(server: Server) -> None:
    with http(server.url, server.key) as client:
        turn = client.post("/v1/chat", json={"message": "I keep bees, you know"}).json()
        message = client.get("/v1/messages").json()["messages"][-1]
        segment = client.get("/v1/segments").json()["segments"][0]
        memory = remember(client)
        server.rows(
            "update memories set source = 'extraction', source_segment = $2, "
            "source_messages = array[$3::uuid] where id = $1",
            memory["id"], segment["id"], message["id"],
        )  # fmt: skip
        evidence = client.get(f"/v1/memories/{memory['id']}").json()["evidence"]
    assert evidence["segment"]["id"] == segment["id"]
    (quote,) = evidence["messages"]
    assert quote["turn_id"] == turn["turn_id"]
    assert (quote["role"], quote["text"]) == ("user", "I keep bees, you know")


# Changing.


def test_a_change_carries_the_version_that_was_read(client: httpx2.Client) -> None:
    memory = remember(client, expires_at="2027-01-01T00:00:00Z")
    path = f"/v1/memories/{memory['short_id']}"
    changed = client.patch(
        path, json={"version": memory["version"], "text": OTHER, "expires_at": None}
    )
    assert changed.status_code == 200
    assert changed.json()["text"] == OTHER
    assert changed.json()["expires_at"] is None
    stale = client.patch(path, json={"version": memory["version"], "text": FACT})
    problem(stale, 409, "conflict")
    assert client.get(path).json()["text"] == OTHER


def test_what_a_change_does_not_name_stays(client: httpx2.Client) -> None:
    memory = remember(client, happens_at="2027-01-01T00:00:00Z")
    path = f"/v1/memories/{memory['id']}"
    changed = client.patch(path, json={"version": memory["version"], "text": OTHER}).json()
    assert changed["happens_at"] == memory["happens_at"]
    back = client.patch(path, json={"version": changed["version"], "happens_at": None}).json()
    assert (back["text"], back["happens_at"]) == (OTHER, None)


def test_a_memory_that_is_confirmed_counts_for_more_until_that_is_undone(
    client: httpx2.Client,
) -> None:
    memory = remember(client)
    path = f"/v1/memories/{memory['id']}"
    confirmed = client.post(f"{path}/confirm").json()
    assert confirmed["importance"] > memory["importance"]
    [step] = [e for e in client.get(f"{path}/events").json()["events"] if e["kind"] == "touched"]
    assert step["actor"] == "user"
    client.post(f"{path}/undo", json={"event_id": step["id"]})
    assert client.get(path).json()["importance"] == pytest.approx(memory["importance"], abs=1e-6)


def test_the_archive_takes_a_memory_and_gives_it_back(client: httpx2.Client) -> None:
    memory = remember(client)
    path = f"/v1/memories/{memory['id']}"

    def listed(status: str) -> int:
        return len(client.get("/v1/memories", params={"status": status}).json()["memories"])

    assert client.post(f"{path}/archive").json()["status"] == "archived"
    assert (listed("active"), listed("archived")) == (0, 1)
    assert client.post(f"{path}/archive").json()["status"] == "archived"
    assert client.post(f"{path}/restore").json()["status"] == "active"
    assert (listed("active"), listed("archived")) == (1, 0)


def test_a_deleted_memory_is_gone_with_its_words_and_only_the_account_remains(
    client: httpx2.Client,
) -> None:
    memory = remember(client)
    path = f"/v1/memories/{memory['id']}"
    client.post(f"{path}/annotations", json={"text": "bees again"})
    assert client.delete(path).status_code == 204
    problem(client.get(path), 404, "not_found")
    problem(client.delete(path), 404, "not_found")
    account = client.get(f"{path}/events")
    assert account.json()["events"][-1]["kind"] == "deleted"
    assert "bees" not in account.text
    assert all(event["undo"] is None for event in account.json()["events"])


# Links, notes, merging.


def test_links_are_read_from_both_ends(client: httpx2.Client) -> None:
    one, two = remember(client), remember(client, OTHER)
    made = client.post(
        f"/v1/memories/{one['short_id']}/links",
        json={"to": two["short_id"], "type": "contextualizes", "reason": "same town"},
    )
    assert made.status_code == 200
    (there,) = client.get(f"/v1/memories/{one['id']}/links").json()["links"]
    (back,) = client.get(f"/v1/memories/{two['id']}/links").json()["links"]
    assert (there["memory"]["id"], there["outgoing"]) == (two["id"], True)
    assert (back["memory"]["id"], back["outgoing"]) == (one["id"], False)
    assert (there["type"], there["reason"]) == ("contextualizes", "same town")
    again = client.post(
        f"/v1/memories/{one['id']}/links", json={"to": two["id"], "type": "contextualizes"}
    )
    assert len(again.json()["links"]) == 1


def test_links_are_followed_as_deep_as_asked(client: httpx2.Client) -> None:
    texts = ["The mill stands by the river", "The river froze last winter", "Winters are long here"]
    chain = [remember(client, text) for text in texts]
    for one, two in pairwise(chain):
        client.post(f"/v1/memories/{one['id']}/links", json={"to": two["id"]})
    for depth in (1, 2):
        found = client.get(f"/v1/memories/{chain[0]['id']}/links", params={"depth": depth}).json()
        assert [link["depth"] for link in found["links"]] == list(range(1, depth + 1))


def test_a_note_stands_beside_the_memory(client: httpx2.Client) -> None:
    memory = remember(client)
    path = f"/v1/memories/{memory['id']}"
    note = client.post(f"{path}/annotations", json={"text": "since 2019"}).json()
    assert (note["author"], note["text"]) == ("user", "since 2019")
    assert client.get(path).json()["annotations"] == [note]


def test_merging_makes_one_of_several_and_names_it_as_their_successor(
    client: httpx2.Client,
) -> None:
    one, two = remember(client), remember(client, OTHER)
    merged = client.post(
        "/v1/memories/merge",
        json={"ids": [one["short_id"], two["id"]], "text": "Ada keeps bees and Bob plays cello"},
    ).json()
    assert merged["source"] == "merge"
    old = client.get(f"/v1/memories/{one['id']}").json()
    assert (old["status"], old["successor"]["id"]) == ("archived", merged["id"])
    evidence = client.get(f"/v1/memories/{merged['id']}").json()["evidence"]
    assert {source["id"] for source in evidence["memories"]} == {one["id"], two["id"]}
    again = client.post("/v1/memories/merge", json={"ids": [one["id"], two["id"]], "text": FACT})
    problem(again, 409, "conflict")


# Undo.


def test_every_change_is_told_in_a_sentence_and_undone_by_its_event(client: httpx2.Client) -> None:
    memory = remember(client)
    path = f"/v1/memories/{memory['id']}"
    client.patch(path, json={"version": memory["version"], "text": OTHER})
    edited = history(client, memory)[-1]
    assert edited["kind"] == "edited"
    assert FACT in edited["summary"]
    assert OTHER in edited["summary"]
    assert FACT in edited["undo"]
    undone = client.post(f"{path}/undo", json={"event_id": edited["id"]})
    assert undone.status_code == 200
    assert client.get(path).json()["text"] == FACT
    account = history(client, memory)
    assert account[-2]["undone_by"] == undone.json()["step"]
    assert account[-2]["undo"] is None
    twice = client.post(f"{path}/undo", json={"event_id": edited["id"]})
    problem(twice, 409, "conflict")
    back = client.post(f"{path}/undo", json={"event_id": account[-1]["id"]})
    assert back.status_code == 200
    assert client.get(path).json()["text"] == OTHER


def test_undoing_a_merge_brings_all_its_sources_back(client: httpx2.Client) -> None:
    one, two = remember(client), remember(client, OTHER)
    merged = client.post(
        "/v1/memories/merge", json={"ids": [one["id"], two["id"]], "text": "Bees and a cello"}
    ).json()
    event = history(client, one)[-1]
    assert "2 other memories" in event["undo"]
    done = client.post(f"/v1/memories/{one['id']}/undo", json={"event_id": event["id"]})
    assert done.status_code == 200
    problem(client.get(f"/v1/memories/{merged['id']}"), 404, "not_found")
    for source in (one, two):
        assert client.get(f"/v1/memories/{source['id']}").json()["status"] == "active"


def test_what_has_changed_since_is_not_undone(client: httpx2.Client) -> None:
    memory = remember(client)
    path = f"/v1/memories/{memory['id']}"
    client.patch(path, json={"version": memory["version"], "text": OTHER})
    event = history(client, memory)[-1]
    version = client.get(path).json()["version"]
    client.patch(path, json={"version": version, "text": "Something else altogether"})
    problem(client.post(f"{path}/undo", json={"event_id": event["id"]}), 409, "conflict")
    assert client.get(path).json()["text"] == "Something else altogether"


def test_an_event_of_another_memory_is_not_undone_here(client: httpx2.Client) -> None:
    one, two = remember(client), remember(client, OTHER)
    event = history(client, two)[-1]
    refused = client.post(f"/v1/memories/{one['id']}/undo", json={"event_id": event["id"]})
    problem(refused, 404, "not_found")
    fresh = {"event_id": str(SystemIds().new())}
    problem(client.post(f"/v1/memories/{one['id']}/undo", json=fresh), 404, "not_found")


# Entities.


def test_entities_are_listed_counted_and_merged(client: httpx2.Client) -> None:
    remember(client, entities=[{"name": "Ada Lovelace", "type": "PERSON"}])
    remember(client, OTHER, entities=[{"name": "Countess Ada", "type": "PERSON"}])
    found = client.get("/v1/entities", params={"q": "ADA"}).json()["entities"]
    assert {entity["name"] for entity in found} == {"Ada Lovelace", "Countess Ada"}
    into, other = found
    merged = client.post(
        "/v1/entities/merge", json={"into": into["id"], "others": [other["id"]]}
    ).json()
    assert (merged["id"], merged["memories"]) == (into["id"], 2)
    (left,) = client.get("/v1/entities", params={"q": "ada"}).json()["entities"]
    assert left["id"] == into["id"]
