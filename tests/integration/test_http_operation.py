"""What an operator sees and does: health, status, metrics, dead letters, secrets, the pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.conftest import Server
from tests.support.processes import ServerProcess
from tests.support.web import http, problem


@pytest.fixture
def operator(server: Server) -> Iterator[httpx2.Client]:
    """The operator of the house: whoever can read the token in its home."""
    with http(server.url, server.process.admin_token) as client:
        yield client


def test_a_server_that_works_is_alive_and_ready_and_says_so_to_everybody(server: Server) -> None:
    with http(server.url) as client:
        assert client.get("/v1/health/live").json() == {"status": "ok"}
        ready = client.get("/v1/health/ready")
    assert ready.status_code == 200
    assert ready.json()["status"] == "ok"
    components = {c["name"]: c for c in ready.json()["components"]}
    assert {"database", "secrets", "cache"} <= components.keys()
    for component in components.values():
        assert component["status"] == "ok"
        assert component["latency_ms"] >= 0


def test_without_its_cache_a_server_is_degraded_but_ready(fresh_server: ServerProcess) -> None:
    fresh_server.valkey_url = "unix:///nonexistent/valkey.sock"
    fresh_server.start()
    with http(fresh_server.url, fresh_server.admin_token) as client:
        ready = client.get("/v1/health/ready")
        assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
        assert (
            client.post("/v1/chat", json={"message": "still here"}).json()["reply"] == "still here"
        )


def test_the_status_tells_versions_components_models_and_work(operator: httpx2.Client) -> None:
    told = operator.get("/v1/status").json()
    assert told["status"] == "ok"
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", told["version"])
    assert told["python"].startswith("3.")
    assert told["uptime_seconds"] > 0
    assert {"purpose": "conversation", "model": "anthropic:double"}.items() <= next(
        m for m in told["models"] if m["purpose"] == "conversation"
    ).items()
    for name in ("work_pending", "work_due", "dead_letters", "connections"):
        assert told[name] >= 0
    assert told["engine"]


def test_metrics_are_for_an_administrator_or_a_scraper_on_this_machine(server: Server) -> None:
    with http(server.url) as local, http(server.url, server.admin_key) as admin:
        local.get("/v1/health/live")
        scraped = local.get("/metrics")
        assert scraped.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert re.search(
            r'^mira_http_requests_total{method="GET",route="/v1/health/live",status="200"} \d',
            scraped.text,
            re.M,
        )
        assert "mira_ws_connections" in scraped.text
        assert admin.get("/metrics").status_code == 200
        for header in ("x-forwarded-for", "forwarded", "x-real-ip", "via"):
            problem(local.get("/metrics", headers={header: "10.0.0.1"}), 401, "unauthorized")
        problem(local.get("/metrics", headers={"host": "evil.example"}), 401, "unauthorized")
        behind = {"x-forwarded-for": "10.0.0.1"}
        assert admin.get("/metrics", headers=behind).status_code == 200
    with http(server.url, server.key) as client:
        problem(client.get("/metrics"), 403, "forbidden")


def bury(server: Server, count: int) -> list[int]:
    rows = server.rows(
        "insert into dead_letters (outbox_id, user_id, kind, address, lane, key, payload, "
        "attempts, error, created_at, buried_at) select (select coalesce(max(outbox_id), 0) from "
        "dead_letters) + n, $1, 'continuum', $2, 'turns', 'turns', $3, 8, 'ValueError', now(), "
        "now() from generate_series(1, $4::int) n returning id",
        server.person.id,
        str(server.person.id),
        '{"type": "TakeTurns", "at": "2026-01-05T09:00:00Z"}',
        count,
    )
    return [row["id"] for row in rows]


def test_dead_letters_are_read_in_pages_and_replayed_once(server: Server) -> None:
    buried = bury(server, 3)
    with http(server.url, server.admin_key) as client:
        first = client.get("/v1/dead-letters?limit=2").json()
        rest = client.get(f"/v1/dead-letters?cursor={first['next_cursor']}").json()
        found = first["dead_letters"] + rest["dead_letters"]
        assert [letter["id"] for letter in found] == sorted(buried, reverse=True)
        assert {letter["error"] for letter in found} == {"ValueError"}
        assert rest["next_cursor"] is None
        replayed = client.post(f"/v1/dead-letters/{buried[0]}/replay").json()
        assert replayed["replayed_at"] is not None
        assert client.post(f"/v1/dead-letters/{buried[0]}/replay").json() == replayed
        for missing in ("0", "999999999", "x", "9" * 30):
            problem(client.post(f"/v1/dead-letters/{missing}/replay"), 404, "not_found")


def test_the_operator_sees_the_dead_letters_of_all_users(
    server: Server, operator: httpx2.Client
) -> None:
    (buried,) = bury(server, 1)
    letters = operator.get("/v1/dead-letters?limit=200").json()["dead_letters"]
    assert buried in [letter["id"] for letter in letters]


def test_a_secret_is_kept_named_and_destroyed_but_never_shown(
    server: Server, operator: httpx2.Client
) -> None:
    value = "sk-very-secret-value-0123456789"
    assert operator.put("/v1/secrets/openai_api_key", json={"value": value}).status_code == 204
    listed = operator.get("/v1/secrets")
    assert "openai_api_key" in listed.json()["secrets"]
    assert value not in listed.text
    assert value not in operator.get("/v1/status").text
    assert operator.delete("/v1/secrets/openai_api_key").status_code == 204
    problem(operator.delete("/v1/secrets/openai_api_key"), 404, "not_found")
    assert value not in server.process.output()


@pytest.mark.parametrize(
    ("name", "body", "status"),
    [
        ("Not-A-Name", {"value": "x"}, 422),
        ("a" * 65, {"value": "x"}, 422),
        ("fine", {"value": ""}, 422),
        ("fine", {"value": 5}, 422),
        ("fine", {}, 422),
        ("fine", {"value": "x" * 70_000}, 422),
    ],
)
def test_a_secret_that_cannot_be_kept_is_refused_and_not_repeated(
    operator: httpx2.Client, name: str, body: dict[str, Any], status: int
) -> None:
    refused = operator.put(f"/v1/secrets/{name}", json=body)
    problem(refused, status, "validation_error")
    assert "x" * 100 not in refused.text


def test_the_program_s_own_secrets_are_out_of_reach(operator: httpx2.Client) -> None:
    assert not [n for n in operator.get("/v1/secrets").json()["secrets"] if "postgres" in n]
    refused = operator.put("/v1/secrets/postgres.mira_app", json={"value": "x"})
    problem(refused, 403, "forbidden")
    problem(operator.delete("/v1/secrets/postgres.mira_app"), 403, "forbidden")


def test_nothing_that_was_said_and_no_key_stands_in_the_log(server: Server) -> None:
    words = "words-that-only-two-may-know"
    with http(server.url, server.admin_key) as client:
        client.post("/v1/chat", json={"message": words})
        client.post("/v1/chat", json={"message": words + "\x00"})
        new = client.post("/v1/keys", json={"name": "logged"}).json()["key"]
    link = server.signin_link()
    with http(server.url, new) as client:
        client.get("/v1/messages")
        client.get(link)
        refused = client.post("/v1/chat", json={"message": words, "stream": "x"})
    log = server.process.output()
    assert refused.json()["request_id"] in log
    for secret in (words, new, server.key, server.admin_key, link.rpartition("/")[2]):
        assert secret not in log


def test_the_page_and_its_files_load_nothing_from_elsewhere(server: Server) -> None:
    with http(server.url) as client:
        page = client.get("/")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        files = re.findall(r'(?:src|href)="(/[^"]+)"', page.text)
        assert len(files) > 3
        for path in ("/", "/docs", "/docs/docs.js", *files):
            file = client.get(path)
            assert file.status_code == 200, path
            policy = file.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "script-src 'self';" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert file.headers["x-content-type-options"] == "nosniff"
            assert file.headers["referrer-policy"] == "no-referrer"
            kept = client.get(path, headers={"if-none-match": file.headers["etag"]})
            assert (kept.status_code, kept.content) == (304, b"")
            stale = client.get(path, headers={"if-none-match": '"other"'})
            assert stale.content == file.content


def test_answers_of_the_interface_are_kept_by_nobody_and_framed_nowhere(server: Server) -> None:
    with http(server.url, server.key) as client:
        for path in ("/v1/messages", "/v1/nothing", "/v1/keys"):
            headers = client.get(path).headers
            assert headers["cache-control"] == "no-store"
            assert headers["content-security-policy"].startswith("default-src 'none'")
            assert headers["x-content-type-options"] == "nosniff"
            assert "access-control-allow-origin" not in headers
