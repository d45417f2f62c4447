"""Commands with no server, with one that was killed, and with one that cannot start."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from tests.support.command import mira
from tests.support.processes import ServerProcess


@pytest.fixture
def environment(fresh_server: ServerProcess) -> dict[str, str]:
    """A home and a database that no server has used yet."""
    return fresh_server.environment()


def test_keys_and_dead_letters_need_no_server(environment: dict[str, str]) -> None:
    made = json.loads(mira(environment, "key", "create", "--name", "a", "--json").out)
    assert made["key"].startswith("mira_")
    (listed,) = json.loads(mira(environment, "key", "list", "--json").out)["keys"]
    assert listed["id"] == made["id"]
    assert mira(environment, "key", "revoke", made["id"]).code == 0
    assert json.loads(mira(environment, "dead-letters", "list", "--json").out) == {
        "dead_letters": [],
        "next_cursor": None,
    }


def test_a_key_made_before_the_first_start_works_after_it(fresh_server: ServerProcess) -> None:
    environment = fresh_server.environment()
    made = json.loads(mira(environment, "key", "create", "--name", "early", "--json").out)
    fresh_server.start()
    listed = json.loads(mira(environment, "key", "list", "--json").out)["keys"]
    assert [key["id"] for key in listed] == [made["id"]]


def test_secrets_need_neither_a_server_nor_a_database(tmp_path: Path) -> None:
    environment = {"MIRA_HOME": str(tmp_path / "home"), "MIRA_DATABASE_URL": "postgresql://gone/x"}
    assert mira(environment, "secret", "set", "a_key", stdin=b"value").code == 0
    assert mira(environment, "secret", "list").out == "a_key\n"


@pytest.mark.parametrize("arguments", [("signin",), ("chat", "--once", "hello")])
def test_what_needs_a_server_says_how_to_start_one(
    environment: dict[str, str], arguments: tuple[str, ...]
) -> None:
    done = mira(environment, *arguments)
    assert (done.code, done.out) == (3, "")
    assert "Start one with: mira serve" in done.err


def test_a_killed_server_is_known_to_be_gone(fresh_server: ServerProcess) -> None:
    fresh_server.start()
    fresh_server.kill()
    assert (fresh_server.home / "server.json").exists()
    done = mira(fresh_server.environment(), "signin")
    assert done.code == 3
    assert "No server is running" in done.err


def test_a_server_that_does_not_answer_is_told_from_none(
    environment: dict[str, str], fresh_server: ServerProcess
) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        (fresh_server.home / "server.json").write_text(json.dumps({"url": url, "pid": 1}))
        (fresh_server.home / "admin-token").write_text("token")
        done = mira(environment, "key", "list")
    assert done.code == 3
    assert f"{url} (process 1) cannot be reached" in done.err


def test_a_start_that_is_refused_says_why_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "something").touch()
    done = mira({"MIRA_HOME": str(tmp_path)}, "key", "list")
    assert done.code == 2
    assert "not a home of MIRA" in done.err
    assert "Set MIRA_HOME" in done.err


def test_a_setting_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    done = mira({"MIRA_HOME": str(tmp_path), "MIRA_PORT": "many"}, "doctor")
    assert done.code == 2
    assert "MIRA_PORT" in done.err


def test_debugging_shows_where_an_error_came_from(tmp_path: Path) -> None:
    done = mira({"MIRA_HOME": str(tmp_path), "MIRA_LOG_LEVEL": "debug"}, "signin")
    assert done.code == 3
    assert "Traceback" in done.err


# doctor


def test_doctor_looks_at_everything_without_a_server(environment: dict[str, str]) -> None:
    done = mira(environment, "doctor", "--json")
    report = json.loads(done.out)
    assert done.code == 0, done
    assert report["ok"] is True
    assert report["server"]["running"] is False
    parts = {part["name"]: part for part in report["components"]}
    assert parts.keys() == {"database", "secrets", "cache"}
    assert "PostgreSQL" in parts["database"]["detail"]
    assert all(part["latency_ms"] > 0 for part in parts.values())
    assert (report["work_pending"], report["dead_letters"]) == (0, 0)
    assert report["models"][0]["model"] == "anthropic:double"


def test_doctor_reports_what_keeps_the_server_from_starting(tmp_path: Path) -> None:
    environment = {
        "MIRA_HOME": str(tmp_path / "home"),
        "MIRA_DATABASE_URL": f"postgresql://nobody@/nothing?host={tmp_path}",
        "MIRA_VALKEY_URL": f"unix://{tmp_path}/valkey.sock",
    }
    done = mira(environment, "doctor", "--json")
    report = json.loads(done.out)
    assert (done.code, report["ok"]) == (1, False)
    (fault,) = report["faults"]
    assert fault["what"]
    assert fault["remedy"]
    assert fault["what"] in mira(environment, "doctor").out


def test_doctor_finds_a_cache_that_is_away_and_dead_letters(
    fresh_server: ServerProcess, tmp_path: Path
) -> None:
    fresh_server.extra["MIRA_VALKEY_URL"] = f"unix://{tmp_path}/valkey.sock"
    fresh_server.start()
    done = mira(fresh_server.environment(), "doctor", "--json")
    report = json.loads(done.out)
    assert done.code == 1
    assert report["server"]["running"] is True
    assert [fault["part"] for fault in report["faults"]] == ["cache"]
    shown = mira(fresh_server.environment(), "doctor")
    assert (shown.code, "✗ cache" in shown.out) == (1, True)
