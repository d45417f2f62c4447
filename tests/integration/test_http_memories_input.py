"""What is no acceptable question or change of memories is refused, and nothing is stored."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from mira.web.reading import write_cursor
from tests.conftest import Server
from tests.support.web import http, problem

FACT = "Ada keeps bees on the roof of the library"
UNKNOWN = "00000000-0000-7000-8000-000000000000"
FAMILY = "👩‍👩‍👧‍👦"


@pytest.fixture
def client(server: Server) -> Iterator[httpx2.Client]:
    with http(server.url, server.key) as opened:
        yield opened


@pytest.fixture
def path(client: httpx2.Client) -> str:
    """The address of a memory."""
    return f"/v1/memories/{client.post('/v1/memories', json={'text': FACT}).json()['memory']['id']}"


def nothing_is_stored(server: Server) -> bool:
    return not server.rows("select 1 from memories where user_id = $1", server.person.id)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("text", None),
        ("text", 5),
        ("text", ""),
        ("text", "too short"),
        ("text", FAMILY),
        ("text", " " * 50),
        ("text", "\x00" * 50),
        ("text", "x" * 4001),
        ("text", "x" * 100_000),
        ("happens_at", "2026-12-24T18:00:00"),
        ("happens_at", "2026-02-30T00:00:00Z"),
        ("happens_at", "tomorrow"),
        ("happens_at", "0001-01-01T00:00:00+14:00"),
        ("expires_at", "9999-12-31T23:59:59-12:00"),
        ("expires_at", 1_700_000_000),
        ("entities", "Ada"),
        ("entities", [{"name": ""}]),
        ("entities", [{"name": "Ada", "type": "QUEEN"}]),
        ("entities", [{"name": "Ada"}] * 21),
    ],
)
def test_a_field_that_is_wrong_is_named_and_nothing_is_stored(
    server: Server, field: str, value: Any
) -> None:
    with http(server.url, server.key) as client:
        refused = client.post("/v1/memories", json={"text": FACT, field: value})
    told = problem(refused, 422, "validation_error")
    assert any(error["field"].startswith(field) for error in told["errors"])
    assert nothing_is_stored(server)


@pytest.mark.parametrize(
    "text",
    [
        "エイダは図書館の屋上でミツバチを飼っている",
        "آدا تربي النحل على سطح المكتبة",
        f"{FAMILY} live in the house by the river",
        "a\N{COMBINING ACUTE ACCENT}" * 20,
        "\N{RIGHT-TO-LEFT OVERRIDE}turned round for a while\N{POP DIRECTIONAL FORMATTING}",
        "x" * 4000,
    ],
)
def test_a_fact_of_any_script_is_kept_and_found_by_its_words(
    client: httpx2.Client, text: str
) -> None:
    stored = client.post("/v1/memories", json={"text": text}).json()["memory"]
    found = client.get("/v1/memories/search", params={"q": text[:1000]}).json()["hits"]
    assert [hit["memory"]["id"] for hit in found] == [stored["id"]]
    assert client.get(f"/v1/memories/{stored['id']}").json()["text"] == stored["text"]


def test_what_no_database_holds_is_taken_out_of_a_fact(client: httpx2.Client) -> None:
    stored = client.post("/v1/memories", json={"text": f"Ada\x00 {FACT}"}).json()["memory"]
    assert stored["text"] == f"Ada {FACT}"


@pytest.mark.parametrize("name", [UNKNOWN, "mem_00000000", "mem_", "x", "%00", "a" * 300, "..%2f"])
def test_what_is_no_memory_is_not_found(client: httpx2.Client, path: str, name: str) -> None:
    at = f"/v1/memories/{name}"
    for method, more, body in (
        ("GET", "", None),
        ("PATCH", "", {"version": 1, "text": FACT}),
        ("DELETE", "", None),
        ("POST", "/archive", None),
        ("POST", "/restore", None),
        ("GET", "/links", None),
        ("POST", "/links", {"to": path.rpartition("/")[2]}),
        ("POST", "/annotations", {"text": "x"}),
        ("GET", "/explain", None),
        ("GET", "/events", None),
        ("POST", "/undo", {"event_id": UNKNOWN}),
    ):
        problem(client.request(method, f"{at}{more}", json=body), 404, "not_found")


def test_a_link_leads_to_another_memory_that_is_there(client: httpx2.Client, path: str) -> None:
    problem(client.post(f"{path}/links", json={"to": UNKNOWN}), 404, "not_found")
    itself = {"to": path.rpartition("/")[2]}
    problem(client.post(f"{path}/links", json=itself), 422, "validation_error")
    strange = {"to": UNKNOWN, "type": "loves"}
    problem(client.post(f"{path}/links", json=strange), 422, "validation_error")


@pytest.mark.parametrize(
    "ids", [[], ["mem_00000000"], ["mem_00000000"] * 9, ["x" * 41, "y"], "mem_00000000"]
)
def test_merging_takes_two_to_eight_names(client: httpx2.Client, ids: Any) -> None:
    refused = client.post("/v1/memories/merge", json={"ids": ids, "text": FACT})
    problem(refused, 422, "validation_error")


def test_merging_names_what_is_not_there_and_changes_nothing(
    client: httpx2.Client, path: str
) -> None:
    body = {"ids": [path.rpartition("/")[2], "mem_00000000"], "text": FACT}
    told = problem(client.post("/v1/memories/merge", json=body), 404, "not_found")
    assert "mem_00000000" in told["detail"]
    same = {"ids": [path.rpartition("/")[2]] * 2, "text": FACT}
    problem(client.post("/v1/memories/merge", json=same), 422, "validation_error")
    assert client.get(path).json()["status"] == "active"


@pytest.mark.parametrize(
    "body",
    [
        {"text": FACT},
        {"version": 0, "text": FACT},
        {"version": "1", "text": FACT},
        {"version": 2**31, "text": FACT},
        {"version": 1, "text": "too short"},
        {"version": 1, "text": None},
        {"version": 1, "happens_at": "2026-12-24"},
    ],
)
def test_a_change_that_is_wrong_is_refused(
    client: httpx2.Client, path: str, body: dict[str, Any]
) -> None:
    problem(client.patch(path, json=body), 422, "validation_error")
    assert client.get(path).json()["version"] == 1


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=101", "limit=x", "status=gone", "order=alphabet", "cursor=x",
     f"cursor={write_cursor('2026-01-01T00:00:00', UNKNOWN)}",
     f"cursor={write_cursor(0.5, UNKNOWN)}",
     f"order=importance&cursor={write_cursor('2026-01-01T00:00:00Z', UNKNOWN)}",
     f"order=importance&cursor={write_cursor(1e300, UNKNOWN)}"],
)  # fmt: skip
def test_a_list_that_cannot_be_is_refused(client: httpx2.Client, query: str) -> None:
    problem(client.get(f"/v1/memories?{query}"), 422, "validation_error")


@pytest.mark.parametrize(
    "query",
    ["", "q=", "q=%00", "q=+", f"q={'x' * 2001}", "q=bees&limit=0", "q=bees&limit=51",
     "q=bees&intent=guess", "q=bees&source=web", "q=bees&as_of=2026-01-01T00:00:00"],
)  # fmt: skip
def test_a_search_that_asks_nothing_is_refused(client: httpx2.Client, query: str) -> None:
    problem(client.get(f"/v1/memories/search?{query}"), 422, "validation_error")


def test_a_depth_or_a_size_out_of_bounds_is_refused(client: httpx2.Client, path: str) -> None:
    for query in ("depth=0", "depth=4", "depth=x"):
        problem(client.get(f"{path}/links?{query}"), 422, "validation_error")
    for query in ("limit=0", "limit=201", f"around={'x' * 41}"):
        problem(client.get(f"/v1/memories/graph?{query}"), 422, "validation_error")
    problem(client.get(f"/v1/memories/graph?around={UNKNOWN}"), 404, "not_found")


def test_entities_are_looked_for_by_any_text(client: httpx2.Client) -> None:
    entities = [{"name": "Zoë O'Neill", "type": "PERSON"}]
    client.post("/v1/memories", json={"text": FACT, "entities": entities})
    for q, found in (("zo%C3%AB", 1), ("ZOE+o%E2%80%99", 1), ("zo%00e", 1), ("%ED%A0%80", 0)):
        answer = client.get(f"/v1/entities?q={q}")
        assert (answer.status_code, len(answer.json()["entities"])) == (200, found), q


def test_entities_of_two_kinds_are_not_merged_nor_unknown_ones(client: httpx2.Client) -> None:
    entities = [{"name": "Ada", "type": "PERSON"}, {"name": "Graz", "type": "GPE"}]
    client.post("/v1/memories", json={"text": FACT, "entities": entities})
    one, two = client.get("/v1/entities").json()["entities"]
    at = "/v1/entities/merge"
    both = {"into": one["id"], "others": [two["id"]]}
    problem(client.post(at, json=both), 422, "validation_error")
    problem(client.post(at, json={"into": one["id"], "others": [UNKNOWN]}), 404, "not_found")
    problem(client.post(at, json={"into": one["id"], "others": []}), 422, "validation_error")
    assert len(client.get("/v1/entities").json()["entities"]) == 2


def test_the_same_fact_sent_many_times_at_once_is_one_memory(server: Server) -> None:
    def send(_: int) -> str:
        with http(server.url, server.key) as client:
            outcome: str = client.post("/v1/memories", json={"text": FACT}).json()["outcome"]
            return outcome

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(send, range(8)))
    assert sorted(outcomes) == ["created"] + ["reinforced"] * 7
    rows = server.rows(
        "select s.mention_count from memories m join memory_scores s on s.memory_id = m.id "
        "where m.user_id = $1",
        server.person.id,
    )
    assert [row["mention_count"] for row in rows] == [7]


def test_of_changes_that_race_from_the_same_version_one_wins(server: Server) -> None:
    with http(server.url, server.key) as client:
        memory = client.post("/v1/memories", json={"text": FACT}).json()["memory"]

    def change(n: int) -> int:
        with http(server.url, server.key) as client:
            return client.patch(
                f"/v1/memories/{memory['id']}",
                json={"version": memory["version"], "text": f"Ada keeps {n} hives of bees"},
            ).status_code

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(change, range(2, 8))) == [200, 409, 409, 409, 409, 409]


def test_a_key_that_may_only_read_changes_nothing(server: Server) -> None:
    with http(server.url, server.key) as client:
        memory = client.post("/v1/memories", json={"text": FACT}).json()["memory"]
    at = f"/v1/memories/{memory['id']}"
    with http(server.url, server.read_key) as client:
        assert client.get(at).status_code == 200
        for method, path, body in (
            ("POST", "/v1/memories", {"text": FACT}),
            ("PATCH", at, {"version": 1, "text": FACT}),
            ("DELETE", at, None),
            ("POST", f"{at}/archive", None),
            ("POST", f"{at}/undo", {"event_id": UNKNOWN}),
            ("POST", "/v1/memories/merge", {"ids": ["a", "b"], "text": FACT}),
            ("POST", "/v1/entities/merge", {"into": UNKNOWN, "others": [UNKNOWN]}),
        ):
            problem(client.request(method, path, json=body), 403, "forbidden")
        found = client.get(at).json()
    assert (found["text"], found["status"], found["version"]) == (FACT, "active", 1)
