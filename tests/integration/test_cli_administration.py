"""Keys, secrets, links and dead letters through a running server."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from mira.ids import SystemIds
from tests.conftest import Server
from tests.support.command import MIRA, mira
from tests.support.processes import ROOT
from tests.support.terminal import Terminal


@pytest.fixture
def environment(server: Server) -> dict[str, str]:
    return server.process.environment()


def name() -> str:
    """A name that no other test has used on this server."""
    return f"t{SystemIds().new().hex[-12:]}"


def asked(server: Server, key: str) -> int:
    """The status with which the server answers this key."""
    headers = {"authorization": f"Bearer {key}"}
    return httpx2.get(f"{server.url}/v1/session", headers=headers).status_code


# Keys.


def test_a_key_works_from_its_making_to_its_end(
    server: Server, environment: dict[str, str]
) -> None:
    called = name()
    made = mira(environment, "key", "create", "--name", called, "--scope", "read", "--json")
    key: dict[str, Any] = json.loads(made.out)
    assert made.code == 0
    assert asked(server, key["key"]) == 200
    listed = mira(environment, "key", "list", "--json")
    (found,) = [k for k in json.loads(listed.out)["keys"] if k["id"] == key["id"]]
    assert (found["name"], found["scope"]) == (called, "read")
    assert key["key"] not in listed.out
    assert mira(environment, "key", "revoke", called).code == 0
    assert asked(server, key["key"]) == 401
    assert called not in mira(environment, "key", "list").out
    assert called in mira(environment, "key", "list", "--every").out


def test_a_key_for_people_is_printed_alone_so_that_a_shell_can_take_it(
    server: Server, environment: dict[str, str]
) -> None:
    made = mira(environment, "key", "create", "--name", name())
    assert asked(server, made.out.strip()) == 200


def test_what_cannot_be_done_with_keys_is_said(environment: dict[str, str]) -> None:
    called = name()
    mira(environment, "key", "create", "--name", called)
    again = mira(environment, "key", "create", "--name", called)
    assert (again.code, called in again.err) == (1, True)
    unknown = mira(environment, "key", "revoke", name())
    assert (unknown.code, "mira key list" in unknown.err) == (1, True)
    slip = mira(environment, "key", "revoke", "mira_0123456789")
    assert (slip.code, "not the key itself" in slip.err) == (1, True)


# Secrets.


def test_a_secret_from_a_pipe_is_kept_and_destroyed_and_never_shown(
    environment: dict[str, str],
) -> None:
    called = name()
    kept = mira(environment, "secret", "set", called, stdin=b"hush-hush\n")
    assert kept.code == 0
    listed = mira(environment, "secret", "list", "--json")
    assert called in json.loads(listed.out)["secrets"]
    gone = mira(environment, "secret", "delete", called)
    assert gone.code == 0
    again = mira(environment, "secret", "delete", called)
    assert again.code == 1
    assert not any("hush" in d.out + d.err for d in (kept, listed, gone, again))


def test_a_secret_is_asked_for_without_showing_it(environment: dict[str, str]) -> None:
    called = name()
    with Terminal([*MIRA, "secret", "set", called], environment, directory=ROOT) as terminal:
        terminal.wait_for("not shown")
        terminal.type("hush-hush\r")
        assert terminal.wait_end() == 0
        assert f"Kept {called}." in terminal.text
        assert "hush" not in terminal.raw
    mira(environment, "secret", "delete", called)


@pytest.mark.parametrize("more", [("sk-hush",), ("--value", "sk-hush"), ("--value=sk-hush",)])
def test_a_secret_as_an_argument_is_refused_and_not_repeated(
    environment: dict[str, str], more: tuple[str, ...]
) -> None:
    done = mira(environment, "secret", "set", "some_key", *more)
    assert done.code in (1, 2)
    assert "never an argument" in done.err
    assert "sk-hush" not in done.out + done.err


@pytest.mark.parametrize(
    ("arguments", "stdin"), [(("Bad Name",), b"x"), (("good",), b""), (("good",), b"\xff")]
)
def test_what_is_no_secret_is_refused(
    environment: dict[str, str], arguments: tuple[str, ...], stdin: bytes
) -> None:
    assert mira(environment, "secret", "set", *arguments, stdin=stdin).code == 1


# Signing in.


def test_a_sign_in_link_works_once(environment: dict[str, str]) -> None:
    url = json.loads(mira(environment, "signin", "--json").out)["url"]
    assert [httpx2.get(url).status_code for _ in range(2)] == [303, 401]


# Dead letters.


@pytest.fixture
def letter(server: Server) -> int:
    """Work that was given up: a wake-up that no door will find anything to do for."""
    (row,) = server.rows(
        "insert into dead_letters (outbox_id, user_id, kind, address, lane, key, payload, "
        "attempts, error, created_at, buried_at) select 0, id, 'continuum', id::text, 'turns', "
        'null, \'{"type": "TakeTurns", "at": "2026-01-05T09:00:00Z"}\', 9, '
        "E'Broken\\x1b[2J badly', now(), now() from users where id = $1 returning id",
        server.person.id,
    )
    number: int = row["id"]
    return number


def test_a_dead_letter_is_listed_shown_and_put_back_to_work(
    environment: dict[str, str], letter: int
) -> None:
    listed = mira(environment, "dead-letters", "list")
    (row,) = [line for line in listed.out.splitlines() if line.startswith(f"{letter} ")]
    assert "Broken" in row
    assert "\x1b" not in listed.out
    shown = json.loads(mira(environment, "dead-letters", "show", str(letter), "--json").out)
    assert (shown["id"], shown["attempts"]) == (letter, 9)
    assert "TakeTurns" in mira(environment, "dead-letters", "show", str(letter)).out
    replayed = json.loads(mira(environment, "dead-letters", "replay", str(letter), "--json").out)
    assert replayed["replayed_at"] is not None
    after = mira(environment, "dead-letters", "list", "--json").out
    assert letter not in [one["id"] for one in json.loads(after)["dead_letters"]]


def test_an_unknown_dead_letter_is_said_to_be_so(environment: dict[str, str]) -> None:
    for command in ("show", "replay"):
        assert mira(environment, "dead-letters", command, "999999999").code == 1
