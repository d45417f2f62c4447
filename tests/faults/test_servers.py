"""Servers and stores that fail, or meet each other."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed

from tests.conftest import Place
from tests.support.client import Client, spoken
from tests.support.processes import DoubleProcess, Person, Residents, ServerProcess

SLOW: dict[str, Any] = {"text": " ".join(f"word{n}" for n in range(30)), "token_ms": 100}


def _ws(server: ServerProcess) -> str:
    return "ws" + server.url.removeprefix("http") + "/v1/ws"


@pytest.fixture
def residents(place: Place) -> Residents:
    return Residents(place.app, place.engine)


@pytest.fixture
def person(residents: Residents) -> Person:
    return residents.add("ada")


@pytest.fixture
def second(fresh_server: ServerProcess) -> Iterator[ServerProcess]:
    """Another server on the same database, from a home of its own."""
    other = ServerProcess(fresh_server.database_url, fresh_server.valkey_url, fresh_server.double)
    yield other
    other.close()


@pytest.fixture
def alone(double: DoubleProcess) -> Iterator[ServerProcess]:
    """A server with services of its own, as on a fresh machine."""
    double.reset()
    server = ServerProcess("", "", double)
    yield server
    server.stop()
    server.close()


def _first_key(server: ServerProcess) -> str:
    return next(w for w in server.output().split() if w.startswith("mira_"))


def _child(server: ServerProcess, program: str) -> int:
    """The process of one of the server's own services."""
    assert server.process
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "status").read_text()
                command = (entry / "cmdline").read_text()
            except OSError:
                continue
            if f"PPid:\t{server.process.pid}\n" in status and program in command:
                return int(entry.name)
    raise AssertionError(f"{program} is no child of the server")


def test_a_second_server_on_the_same_database_refuses_to_start(
    fresh_server: ServerProcess, second: ServerProcess, person: Person
) -> None:
    fresh_server.start()
    second.launch()
    assert second.wait() == 2
    assert "Another MIRA server is already working on this database." in second.output()
    with Client(_ws(fresh_server), person.key) as client:
        assert client.ask("still here?", "r") == "still here?"


def test_a_second_server_in_the_same_home_refuses_to_start(fresh_server: ServerProcess) -> None:
    fresh_server.start()
    pid = fresh_server.process.pid if fresh_server.process else 0
    twin = ServerProcess(
        fresh_server.database_url, fresh_server.valkey_url, fresh_server.double,
        home=fresh_server.home,
    )  # fmt: skip
    twin.launch()
    assert twin.wait() == 2
    assert f"Another MIRA (process {pid}) is using" in twin.output()


def test_a_suspended_server_that_was_replaced_cannot_write_when_it_wakes_and_exits(
    fresh_server: ServerProcess,
    second: ServerProcess,
    person: Person,
    residents: Residents,
    place: Place,
) -> None:
    fresh_server.double.script({"default": SLOW})
    fresh_server.start()
    with Client(_ws(fresh_server), person.key) as client:
        accepted = client.say("hello", "r")
        client.until("text")
        fresh_server.signal(signal.SIGSTOP)
        try:
            residents.rows(
                place.owner,
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where datname = current_database() and pid <> pg_backend_pid()",
            )
            second.start()
        finally:
            fresh_server.signal(signal.SIGCONT)
    assert fresh_server.wait() != 0
    assert "Another MIRA server is already working on this database." in fresh_server.output()
    with Client(_ws(second), person.key) as client:
        client.send("resume", turn_id=accepted["turn_id"], after=0)
        frames = client.until("complete", "interrupted")
    # The first server's text was seen, so the turn is marked, or it was run again: once.
    [turn] = residents.rows(place.owner, "select state, attempt from turns")
    assert (turn["state"], turn["attempt"]) in (("interrupted", 1), ("complete", 2))
    assert frames[-1]["type"] == turn["state"]
    answers = residents.rows(place.owner, "select count(*) as n from messages where role <> 'user'")
    assert answers == [{"n": 1}]


def test_postgres_killed_in_mid_turn_loses_nothing_and_the_process_lives(
    alone: ServerProcess,
) -> None:
    alone.double.script({"default": SLOW})
    alone.start()
    key = _first_key(alone)
    with Client(_ws(alone), key) as client:
        client.say("first", "r1")
        seen = client.until("text")
        os.kill(_child(alone, "postgres"), signal.SIGKILL)
        frames = seen + client.until("complete", "interrupted", "error")
        assert frames[-1]["type"] == "complete"
        assert spoken(frames) == SLOW["text"]
        assert client.ask("second", "r2") == SLOW["text"]
    answer = httpx2.get(
        f"{alone.url}/v1/messages", headers={"Authorization": f"Bearer {key}"}, timeout=30
    )
    texts = [m["blocks"][0]["text"] for m in answer.json()["messages"]]
    assert texts[::-1] == ["first", SLOW["text"], "second", SLOW["text"]]
    assert alone.stop() == 0


def test_valkey_killed_in_mid_turn_costs_nothing_but_the_copies(alone: ServerProcess) -> None:
    alone.double.script({"default": SLOW})
    alone.start()
    with Client(_ws(alone), _first_key(alone)) as client:
        client.say("first", "r1")
        client.until("text")
        os.kill(_child(alone, "valkey"), signal.SIGKILL)
        assert client.until("complete", "interrupted", "error")[-1]["reply"] == SLOW["text"]
        assert client.ask("second", "r2") == SLOW["text"]


def test_without_valkey_at_the_start_the_server_is_degraded_and_answers(
    fresh_server: ServerProcess, person: Person
) -> None:
    fresh_server.valkey_url = "unix:///nowhere/valkey.sock"
    fresh_server.start()
    ready = httpx2.get(f"{fresh_server.url}/v1/health/ready", timeout=30)
    assert ready.status_code == 200
    assert ready.json()["status"] == "degraded"
    with Client(_ws(fresh_server), person.key) as client:
        assert client.ask("hello", "r") == "hello"
        # The feed of a turn that is over is still followed from memory, and then from Postgres.
        turn_id = client.say("hello", "r")["turn_id"]
        client.send("resume", turn_id=turn_id, after=0)
        assert client.until("complete")[-1]["reply"] == "hello"


def test_stopped_by_sigterm_clients_are_told_and_a_running_turn_is_finished(
    fresh_server: ServerProcess, person: Person, residents: Residents, place: Place
) -> None:
    fresh_server.double.script({"default": SLOW})
    fresh_server.start()
    with Client(_ws(fresh_server), person.key) as client:
        client.say("hello", "r")
        client.until("text")
        fresh_server.signal(signal.SIGTERM)
        assert client.until("shutdown")[-1]["reconnect_after"] > 0
        with pytest.raises(ConnectionClosed) as closed:
            client.until("never")
        assert closed.value.rcvd
        assert closed.value.rcvd.code == 1001
    began = time.monotonic()
    assert fresh_server.wait() == 0
    assert time.monotonic() - began < 35
    [turn] = residents.rows(place.owner, "select state from turns")
    assert turn["state"] == "complete"
    assert not (fresh_server.home / "server.json").exists()


def test_an_answer_is_there_after_a_restart_in_order(
    fresh_server: ServerProcess, person: Person
) -> None:
    fresh_server.start()
    with Client(_ws(fresh_server), person.key) as client:
        for n in range(3):
            assert client.ask(f"message {n}", f"r{n}") == f"message {n}"
    fresh_server.stop()
    fresh_server.start()
    history: list[dict[str, Any]] = httpx2.get(
        f"{fresh_server.url}/v1/messages",
        headers={"Authorization": f"Bearer {person.read_key}"}, timeout=30,
    ).json()["messages"]  # fmt: skip
    assert [m["blocks"][0]["text"] for m in history[::-1]] == [
        f"message {n}" for n in range(3) for _ in range(2)
    ]
    # The conversation goes on from where it was: the model is sent the earlier turns.
    with Client(_ws(fresh_server), person.key) as client:
        client.ask("and now?", "r9")
    sent = fresh_server.double.requests()[-1]["messages"]
    assert [m["role"] for m in sent] == ["user", "assistant"] * 3 + ["user"]
