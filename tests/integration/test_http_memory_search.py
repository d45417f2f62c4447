"""Memories and messages searched over HTTP, explained, and seen as a graph."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import httpx2
import pytest

from mira.ids import SystemIds
from tests.conftest import Server
from tests.support.web import http, problem

BEES = "Ada keeps bees on the roof of the library"
CELLO = "Bob plays the cello in a quartet on Thursdays"
MILL = "The old mill by the river was sold to a baker"
SHARED = "00000000-0000-0000-0000-0000000000ff"


@pytest.fixture
def client(server: Server) -> Iterator[httpx2.Client]:
    """A client of a server that has its models loaded."""
    with http(server.url, server.key) as opened:
        until(lambda: embedding(opened) == "ok")
        yield opened


def embedding(client: httpx2.Client) -> str:
    components = client.get("/v1/health/ready").json()["components"]
    found: str = next(one["status"] for one in components if one["name"] == "embedding")
    return found


def until(holds: Callable[[], bool]) -> None:
    """Ask again until it holds, half a minute long."""
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def remember(client: httpx2.Client, text: str, *about: str, **fields: Any) -> dict[str, Any]:
    entities = [{"name": name, "type": "PERSON"} for name in about]
    body = {"text": text, "entities": entities, **fields}
    memory: dict[str, Any] = client.post("/v1/memories", json=body).json()["memory"]
    return memory


def search(client: httpx2.Client, q: str, **query: Any) -> list[dict[str, Any]]:
    answer = client.get("/v1/memories/search", params={"q": q, **query})
    assert answer.status_code == 200, answer.text
    hits: list[dict[str, Any]] = answer.json()["hits"]
    return hits


def test_a_search_finds_by_words_by_meaning_and_by_name_and_says_which(
    client: httpx2.Client,
) -> None:
    bees = remember(client, BEES, "Ada")
    remember(client, CELLO, "Bob")
    words = search(client, "library roof")[0]
    assert words["memory"]["id"] == bees["id"]
    assert {"lexical", "dense"} <= set(words["lanes"])
    meaning = search(client, "an insect that makes honey")[0]
    assert meaning["memory"]["id"] == bees["id"]
    assert "lexical" not in meaning["lanes"]
    assert "entity" in search(client, "what about Ada?")[0]["lanes"]
    scores = [hit["score"] for hit in search(client, "a quartet in the library")]
    assert scores == sorted(scores, reverse=True)


def test_what_is_linked_comes_along(client: httpx2.Client) -> None:
    bees, mill = remember(client, BEES), remember(client, MILL)
    body = {"to": mill["id"], "type": "causes", "reason": "he wanted honey"}
    client.post(f"/v1/memories/{bees['id']}/links", json=body)
    (hit,) = search(client, "bees on a roof", limit=1)
    (linked,) = hit["linked"]
    assert (linked["memory"]["id"], linked["words"]) == (mill["id"], "causes")
    assert linked["reason"] == "he wanted honey"


def test_what_is_archived_is_not_found(client: httpx2.Client) -> None:
    bees = remember(client, BEES)
    client.post(f"/v1/memories/{bees['id']}/archive")
    assert search(client, "bees") == []


def test_a_search_as_of_a_day_finds_what_was_true_then(
    server: Server, client: httpx2.Client
) -> None:
    old = remember(client, "Ada lives in Lisbon near the harbour")
    new = remember(client, "Since the spring Ada has her home in the hills of Graz")
    server.rows(
        "update memories set valid_from = '2025-01-01Z', valid_to = '2026-03-01Z', "
        "superseded_by = $2 where id = $1",
        old["id"], new["id"],
    )  # fmt: skip
    server.rows("update memories set valid_from = '2026-03-01Z' where id = $1", new["id"])
    then = search(client, "where does Ada live", as_of="2025-06-01T00:00:00Z")
    assert [hit["memory"]["id"] for hit in then] == [old["id"]]
    later = search(client, "where does Ada live", as_of="2026-06-01T00:00:00Z")
    assert [hit["memory"]["id"] for hit in later] == [new["id"]]
    now = {hit["memory"]["id"]: hit["memory"] for hit in search(client, "where does Ada live")}
    assert set(now) == {old["id"], new["id"]}
    assert now[old["id"]]["superseded_by"] == new["id"]


def test_a_memory_that_everybody_shares_is_found_marked_and_cannot_be_changed(
    server: Server, client: httpx2.Client
) -> None:
    word = f"w{SystemIds().new().hex[-10:]}"
    made = remember(client, f"The house rules are on the {word} wall")
    server.rows(
        "insert into corpora (user_id, source) values ($1, 1) on conflict do nothing", SHARED
    )
    for table in ("memories", "memory_scores", "postings", "term_counts"):
        column = "memory_id" if table == "memory_scores" else "id"
        of = (
            f"{column} = $2" if table.startswith("memor") else "source = 1 and $2::uuid is not null"
        )
        server.rows(
            f"update {table} set user_id = $3 where user_id = $1 and {of}",  # noqa: S608
            server.person.id, made["id"], SHARED,
        )  # fmt: skip
    server.rows("update corpora set documents = 1, length = 9 where user_id = $1", SHARED)
    try:
        (hit,) = search(client, word)
        assert (hit["memory"]["id"], hit["memory"]["shared"]) == (made["id"], True)
        at = f"/v1/memories/{made['id']}"
        problem(client.delete(at), 404, "not_found")
        problem(client.patch(at, json={"version": 1, "text": BEES}), 404, "not_found")
    finally:
        server.rows("delete from memories where user_id = $1", SHARED)
        server.rows("delete from postings where user_id = $1", SHARED)


def test_messages_of_the_conversation_are_found_with_their_words(client: httpx2.Client) -> None:
    remember(client, BEES)
    turn = client.post("/v1/chat", json={"message": "The bees swarmed twice in May"}).json()
    client.post("/v1/chat", json={"message": "Tomorrow I tune the cello"})
    until(lambda: bool(search(client, "swarm", source="messages")))
    found = search(client, "when did the bees swarm?", source="messages")
    assert {hit["source"] for hit in found} == {"message"}
    best = found[0]["message"]
    assert best["turn_id"] == turn["turn_id"]
    assert best["text"] == "The bees swarmed twice in May"
    assert found[0]["memory"] is None
    both = search(client, "bees", source="all")
    assert [hit["source"] for hit in both[:2]] == ["memory", "message"]
    assert len(search(client, "bees", source="all", limit=1)) == 1


def test_the_importance_is_reckoned_from_its_terms(client: httpx2.Client) -> None:
    bees, mill = remember(client, BEES), remember(client, MILL)
    remember(client, BEES)
    client.post(f"/v1/memories/{mill['id']}/links", json={"to": bees["id"]})
    explained = client.get(f"/v1/memories/{bees['short_id']}/explain").json()
    terms = {term["name"]: term for term in explained["terms"]}
    assert explained["memory_id"] == bees["id"]
    assert terms["links"]["numbers"] == {"links": 1.0}
    assert terms["links"]["value"] == pytest.approx(0.04)
    assert terms["mentions"]["numbers"] == {"mentions": 1.0}
    total = sum(terms[n]["value"] for n in ("use", "links", "names", "mentions", "newness"))
    assert terms["sum"]["value"] == pytest.approx(total)
    assert all(term["formula"] for term in explained["terms"])
    stored = client.get(f"/v1/memories/{bees['id']}").json()["importance"]
    assert explained["score"] == pytest.approx(stored, abs=1e-3)


def test_a_date_counts_in_days_from_now(client: httpx2.Client) -> None:
    party = remember(client, "The party of the quartet", happens_at="2000-01-01T00:00:00Z")
    explained = client.get(f"/v1/memories/{party['id']}/explain").json()
    terms = {term["name"]: term for term in explained["terms"]}
    assert terms["date"]["value"] == pytest.approx(0.4)
    assert terms["date"]["numbers"]["days"] < -9000
    assert terms["expiry"]["numbers"] == {}
    assert terms["weight"]["value"] == pytest.approx(terms["sum"]["value"] * 0.4)


def test_the_graph_has_links_and_the_names_that_memories_share(client: httpx2.Client) -> None:
    bees = remember(client, BEES, "Ada")
    cello = remember(client, CELLO, "Bob", "Ada")
    mill = remember(client, MILL)
    client.post(f"/v1/memories/{mill['id']}/links", json={"to": cello["id"], "type": "precedes"})
    graph = client.get("/v1/memories/graph").json()
    names = {node["id"]: node["label"] for node in graph["nodes"]}
    assert {"Ada", BEES, CELLO, MILL} == set(names.values())
    edges = {(names[e["from_id"]], e["words"], names[e["to_id"]]) for e in graph["edges"]}
    assert edges == {
        (MILL, "comes before", CELLO),
        (BEES, "is about", "Ada"),
        (CELLO, "is about", "Ada"),
    }
    near = client.get("/v1/memories/graph", params={"around": mill["short_id"]}).json()
    assert {node["label"] for node in near["nodes"]} == {MILL, CELLO}
    client.post(f"/v1/memories/{bees['id']}/archive")
    left = client.get("/v1/memories/graph").json()["nodes"]
    assert BEES not in {node["label"] for node in left}


def test_a_graph_is_as_large_as_asked_and_its_edges_lead_between_its_nodes(
    client: httpx2.Client,
) -> None:
    things = ("harbour", "volcano", "piano", "tractor", "novel", "wedding", "glacier", "potato")
    made = [remember(client, f"Everyone spoke of the {thing}", "Ada") for thing in things]
    for one, two in pairwise(made):
        if one["id"] != two["id"]:
            client.post(f"/v1/memories/{one['id']}/links", json={"to": two["id"]})
    for limit in (1, 3, 6, 60):
        graph = client.get("/v1/memories/graph", params={"limit": limit}).json()
        present = {node["id"] for node in graph["nodes"]}
        assert 1 <= len(graph["nodes"]) <= limit
        assert all({e["from_id"], e["to_id"]} <= present for e in graph["edges"])
