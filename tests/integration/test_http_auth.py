"""Who may come in over HTTP, with what, and for how long."""

from __future__ import annotations

from http.cookies import SimpleCookie
from typing import Any

import httpx2
import pytest

from tests.conftest import Server
from tests.support.web import http, problem

#: For each endpoint what is needed; `{}` stands for an id that does not exist.
NOBODY = "00000000-0000-7000-8000-000000000000"
READING = [
    "/v1/turns",
    f"/v1/turns/{NOBODY}",
    f"/v1/turns/{NOBODY}/events",
    f"/v1/turns/{NOBODY}/trace",
    "/v1/messages",
    f"/v1/messages/{NOBODY}",
    "/v1/segments",
    f"/v1/segments/{NOBODY}",
    "/v1/working-memory",
    "/v1/actions",
    "/v1/session",
]
CHATTING: list[tuple[str, dict[str, Any] | None]] = [
    ("/v1/chat", {"message": "hello"}),
    ("/v1/conversation", None),
    (f"/v1/turns/{NOBODY}/cancel", None),
    (f"/v1/turns/{NOBODY}/retry", None),
    (f"/v1/actions/{NOBODY}", {"allow": True}),
    ("/v1/segments/active/pause", None),
    ("/v1/segments/active/resume", None),
    ("/v1/segments/active/collapse", None),
]
ADMINISTERING: list[tuple[str, str, dict[str, Any] | None]] = [
    ("GET", "/v1/keys", None),
    ("POST", "/v1/keys", {"name": "n"}),
    ("DELETE", f"/v1/keys/{NOBODY}", None),
    ("POST", "/v1/signin", None),
    ("GET", "/v1/dead-letters", None),
    ("POST", "/v1/dead-letters/1/replay", None),
    ("GET", "/v1/secrets", None),
    ("PUT", "/v1/secrets/some", {"value": "v"}),
    ("DELETE", "/v1/secrets/some", None),
    ("GET", "/v1/status", None),
]
EVERYTHING = [
    *(("GET", path, None) for path in READING),
    *(("POST", path, body) for path, body in CHATTING),
    *ADMINISTERING,
]


@pytest.fixture
def origin(server: Server) -> dict[str, str]:
    """The headers of a page of this server."""
    return {"origin": server.url}


def cookie_of(response: httpx2.Response) -> Any:
    return SimpleCookie(response.headers["set-cookie"])["mira_session"]


def test_without_a_key_nothing_is_answered(server: Server) -> None:
    with http(server.url) as client:
        for method, path, body in EVERYTHING:
            response = client.request(method, path, json=body)
            problem(response, 401, "unauthorized")
            assert response.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    "header",
    [
        "Bearer mira_" + "A" * 43,
        "Bearer mira_",
        "Bearer",
        "Bearer sk-something-else",
        "Basic bWlyYTptaXJh",
        "mira_" + "A" * 43,
        "Bearer " + "m" * 8000,
        "Bearer mira_ünïcode",
    ],
)
def test_a_wrong_key_is_refused(server: Server, header: str) -> None:
    with http(server.url) as client:
        response = client.get(
            "/v1/messages", headers={b"authorization": header.encode("latin-1", "replace")}
        )
        problem(response, 401, "unauthorized")


def test_a_key_for_reading_reads_and_does_nothing_else(server: Server) -> None:
    with http(server.url, server.read_key) as client:
        for path in READING:
            assert client.get(path).status_code in (200, 404), path
        for path, body in CHATTING:
            problem(client.post(path, json=body), 403, "forbidden")
        for method, path, body in ADMINISTERING:
            problem(client.request(method, path, json=body), 403, "forbidden")
        assert client.get("/v1/messages").json()["messages"] == []


def test_a_key_for_chatting_reads_and_chats_but_administers_nothing(server: Server) -> None:
    with http(server.url, server.key) as client:
        for path in READING:
            assert client.get(path).status_code in (200, 404), path
        for path, body in CHATTING:
            assert client.post(path, json=body).status_code in (200, 404), path
        for method, path, body in ADMINISTERING:
            problem(client.request(method, path, json=body), 403, "forbidden")


def test_a_new_key_is_shown_once_and_works_at_once(server: Server) -> None:
    with http(server.url, server.admin_key) as admin:
        made = admin.post("/v1/keys", json={"name": "phone", "scope": "read"})
        assert made.status_code == 201
        new = made.json()
        assert set(new) == {"id", "key", "name", "scope"}
        listed = admin.get("/v1/keys")
        assert new["key"] not in listed.text
        (entry,) = [key for key in listed.json()["keys"] if key["id"] == new["id"]]
        assert (entry["name"], entry["scope"], entry["revoked_at"]) == ("phone", "read", None)
        problem(admin.post("/v1/keys", json={"name": "phone"}), 409, "conflict")
    with http(server.url, new["key"]) as client:
        assert client.get("/v1/session").json()["scope"] == "read"


def test_a_revoked_key_is_refused_from_the_very_next_request_on(server: Server) -> None:
    with http(server.url, server.admin_key) as admin:
        new = admin.post("/v1/keys", json={"name": "lost", "scope": "chat"}).json()
        with http(server.url, new["key"]) as client:
            assert client.get("/v1/messages").status_code == 200
            assert admin.delete(f"/v1/keys/{new['id']}").status_code == 204
            problem(client.get("/v1/messages"), 401, "unauthorized")
        assert admin.delete(f"/v1/keys/{new['id']}").status_code == 204


def test_a_key_signs_a_browser_in_and_the_session_has_its_rights(
    server: Server, origin: dict[str, str]
) -> None:
    with http(server.url) as browser:
        signed = browser.post("/v1/session", json={"key": server.read_key}, headers=origin)
        assert signed.status_code == 200
        assert signed.json()["scope"] == "read"
        assert server.read_key not in signed.headers["set-cookie"]
        cookie = cookie_of(signed)
        assert cookie["httponly"]
        assert cookie["samesite"].lower() == "strict"
        assert cookie["path"] == "/"
        assert not cookie["secure"]
        assert browser.get("/v1/session").json()["source"] == "session"
        assert browser.get("/v1/messages").status_code == 200
        problem(browser.post("/v1/conversation", headers=origin), 403, "forbidden")


def test_a_session_ends_with_its_key(server: Server, origin: dict[str, str]) -> None:
    with http(server.url, server.admin_key) as admin, http(server.url) as browser:
        new = admin.post("/v1/keys", json={"name": "lent", "scope": "chat"}).json()
        browser.post("/v1/session", json={"key": new["key"]}, headers=origin)
        assert browser.get("/v1/session").status_code == 200
        admin.delete(f"/v1/keys/{new['id']}")
        problem(browser.get("/v1/session"), 401, "unauthorized")


def test_behind_https_the_cookie_is_for_https_alone(server: Server) -> None:
    with http(server.url) as browser:
        signed = browser.post(
            "/v1/session", json={"key": server.key}, headers={"x-forwarded-proto": "https"}
        )
        assert cookie_of(signed)["secure"]


def test_a_wrong_key_opens_no_session(server: Server) -> None:
    with http(server.url) as browser:
        refused = browser.post("/v1/session", json={"key": "mira_wrong"})
        problem(refused, 401, "unauthorized")
        assert "set-cookie" not in refused.headers


def test_by_cookie_only_a_page_of_this_server_may_change_anything(server: Server) -> None:
    with http(server.url) as browser:
        browser.get(server.signin_link())
        for headers in (
            {},
            {"origin": "http://evil.example"},
            {"origin": "null"},
            {"origin": server.url + "9"},
            {"origin": server.url.replace("127.0.0.1", "127.0.0.1.evil.example")},
            {"sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "same-site"},
        ):
            problem(
                browser.post("/v1/chat", json={"message": "x"}, headers=headers), 403, "forbidden"
            )
        assert browser.get("/v1/messages").json()["messages"] == []
        for headers in ({"origin": server.url}, {"sec-fetch-site": "same-origin"}):
            assert browser.post("/v1/conversation", headers=headers).status_code == 200


def test_a_foreign_page_can_neither_sign_in_nor_out(server: Server) -> None:
    foreign = {"origin": "http://evil.example"}
    with http(server.url) as browser:
        problem(
            browser.post("/v1/session", json={"key": server.key}, headers=foreign), 403, "forbidden"
        )
        browser.get(server.signin_link())
        problem(browser.post("/v1/session/logout", headers=foreign), 403, "forbidden")
        assert browser.get("/v1/session").status_code == 200


def test_signing_out_ends_the_session_at_once(server: Server, origin: dict[str, str]) -> None:
    with http(server.url) as browser:
        browser.get(server.signin_link())
        token = browser.cookies["mira_session"]
        assert browser.get("/v1/session").status_code == 200
        out = browser.post("/v1/session/logout", headers=origin)
        assert out.status_code == 204
        assert "mira_session" not in browser.cookies
        again = browser.get("/v1/session", headers={"cookie": f"mira_session={token}"})
        problem(again, 401, "unauthorized")
        assert browser.post("/v1/session/logout", headers=origin).status_code == 204


def test_a_sign_in_link_leads_to_the_page_and_works_once(server: Server) -> None:
    link = server.signin_link()
    with http(server.url) as browser, http(server.url) as second:
        arrived = browser.get(link)
        assert (arrived.status_code, arrived.headers["location"]) == (303, "/")
        assert cookie_of(arrived)["httponly"]
        assert browser.get("/v1/session").json()["user_id"] == str(server.person.id)
        spent = second.get(link)
        assert spent.status_code == 401
        assert spent.headers["content-type"].startswith("text/html")
        assert "set-cookie" not in spent.headers


def test_looking_at_a_link_does_not_use_it_up(server: Server) -> None:
    link = server.signin_link()
    with http(server.url) as browser:
        assert browser.head(link).status_code == 405
        assert browser.get(link, headers={"sec-purpose": "prefetch"}).status_code == 503
        assert browser.get(link).status_code == 303


def test_an_administrator_can_make_a_link(server: Server) -> None:
    with http(server.url, server.admin_key) as admin, http(server.url) as browser:
        link = admin.post("/v1/signin").json()["url"]
        assert link.startswith(f"{server.url}/signin/")
        assert browser.get(link).status_code == 303
        assert browser.get("/v1/session").json()["user_id"] == str(server.person.id)


def test_the_token_in_the_home_administers_for_the_owner(server: Server) -> None:
    with http(server.url, server.process.admin_token) as local:
        told = local.get("/v1/session").json()
        assert (told["source"], told["scope"]) == ("local", "admin")
        assert local.get("/v1/status").status_code == 200


def test_every_answer_names_its_request(server: Server) -> None:
    with http(server.url, server.key) as client:
        seen = {client.get(path).headers["x-request-id"] for path in ("/v1/messages", "/", "/no")}
    assert len(seen) == 3
