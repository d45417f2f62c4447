"""Servers that are told to stop while a provider hangs."""

from __future__ import annotations

import signal
import time
from typing import Any

import pytest

from tests.conftest import Place
from tests.support.client import Client, spoken
from tests.support.processes import Person, Residents, ServerProcess

#: It says a few words and then no more.
HANGING: dict[str, Any] = {"text": "one two three four five six", "token_ms": 700}


@pytest.fixture
def residents(place: Place) -> Residents:
    return Residents(place.app, place.engine)


@pytest.fixture
def person(residents: Residents) -> Person:
    return residents.add("ada")


def _ws(server: ServerProcess) -> str:
    return "ws" + server.url.removeprefix("http") + "/v1/ws"


def _until_it_speaks(server: ServerProcess, person: Person) -> str:
    """Begin a turn, see its first words kept, and leave it running; return what was said."""
    with Client(_ws(server), person.key) as client:
        client.say("hello", "r")
        return spoken(client.until("text") + client.until("text") + client.until("text"))


def test_a_provider_that_hangs_does_not_keep_the_server_and_what_it_said_is_kept(
    fresh_server: ServerProcess, person: Person, residents: Residents, place: Place
) -> None:
    fresh_server.double.script({"default": HANGING | {"text": "one two " + "three " * 60}})
    fresh_server.start(MIRA_STOP_GRACE="0.5")
    said = _until_it_speaks(fresh_server, person)
    began = time.monotonic()
    fresh_server.signal(signal.SIGTERM)
    assert fresh_server.wait() == 0
    assert time.monotonic() - began < 15
    fresh_server.start()
    with Client(_ws(fresh_server), person.key) as client:
        fresh_server.double.script({"default": {"echo": True}})
        assert client.ask("go on", "r2") == "go on"
    rows = residents.rows(place.owner, "select state, checkpoint_text from turns order by seq")
    assert [row["state"] for row in rows] == ["interrupted", "complete"]
    assert rows[0]["checkpoint_text"].startswith(said[:8])


def test_a_second_signal_ends_the_server_without_waiting_for_the_grace(
    fresh_server: ServerProcess, person: Person
) -> None:
    fresh_server.double.script({"default": HANGING | {"text": "one two " + "three " * 120}})
    fresh_server.start(MIRA_STOP_GRACE="60")
    with Client(_ws(fresh_server), person.key) as client:
        client.say("hello", "r")
        client.until("text")
        fresh_server.signal(signal.SIGTERM)
        client.until("shutdown")
        began = time.monotonic()
        fresh_server.signal(signal.SIGTERM)
    fresh_server.wait()
    assert time.monotonic() - began < 15
