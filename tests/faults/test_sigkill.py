"""The process is killed with SIGKILL at each step of a turn, and started again.

Every message that was accepted is there once, answered once or marked, and can be followed;
what changed the world outside is never done twice.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed

from mira.actors.transcript import UNKNOWN
from tests.conftest import Place
from tests.support.client import Client
from tests.support.processes import Person, Residents, ServerProcess

SLOW: dict[str, Any] = {"text": "one two three four five six seven eight", "token_ms": 150}
NOTE: dict[str, Any] = {
    "text": "",
    "tools": [{"name": "note", "arguments": {"text": "milk"}}],
    "times": 1,
}

#: How the turn stands after the restart: (state, attempts that were begun).
RERUN = ("complete", 2)
WHOLE = ("complete", 1)
MARKED = ("interrupted", 1)


@pytest.fixture
def effects(fresh_server: ServerProcess) -> Path:
    path = fresh_server.home / "effects.txt"
    fresh_server.extra["MIRA_TEST_EFFECTS"] = str(path)
    fresh_server.home.joinpath("lock").touch()
    return path


@pytest.fixture
def person(place: Place) -> Person:
    return Residents(place.app, place.engine).add("ada")


def _get(server: ServerProcess, person: Person, path: str) -> Any:
    answer = httpx2.get(
        server.url + path, headers={"Authorization": f"Bearer {person.key}"}, timeout=30
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


def _ws(server: ServerProcess) -> str:
    return "ws" + server.url.removeprefix("http") + "/v1/ws"


@pytest.mark.parametrize(
    ("stage", "script", "outcome", "lines"),
    [
        ("accepted", {"default": SLOW}, WHOLE, 0),
        ("running", {"default": SLOW}, RERUN, 0),
        ("composed", {"default": SLOW}, RERUN, 0),
        ("first_event", {"default": SLOW}, RERUN, 0),
        ("checkpointed", {"default": SLOW}, MARKED, 0),
        ("effect_started", {"default": SLOW, "queue": [NOTE]}, MARKED, 0),
        ("effect_done", {"default": SLOW, "queue": [NOTE]}, MARKED, 1),
        ("committed", {"default": SLOW}, WHOLE, 0),
        ("settled", {"default": SLOW}, WHOLE, 0),
    ],
)
def test_killed_at_any_step_nothing_accepted_is_lost_or_done_twice(
    fresh_server: ServerProcess,
    effects: Path,
    person: Person,
    stage: str,
    script: dict[str, Any],
    outcome: tuple[str, int],
    lines: int,
) -> None:
    fresh_server.double.script(script)
    fresh_server.start(MIRA_TEST_KILL=stage)
    with Client(_ws(fresh_server), person.key) as client:
        client.send("message", request_id="first", content="buy milk")
        with pytest.raises(ConnectionClosed):
            client.until("never")
    assert fresh_server.wait() == -9

    fresh_server.double.script({"default": SLOW})
    fresh_server.start()
    with Client(_ws(fresh_server), person.key) as client:
        again = client.say("buy milk", "first")
        assert again["type"] == "accepted"
        assert again["duplicate"]
        turn_id = again["turn_id"]
        client.send("resume", turn_id=turn_id, after=0)
        end = client.until("complete", "interrupted", "cancelled")[-1]

    turn = _get(fresh_server, person, f"/v1/turns/{turn_id}")
    assert (turn["state"], turn["attempt"]) == outcome
    assert end["type"] == {"complete": "complete", "interrupted": "interrupted"}[outcome[0]]

    history = _get(fresh_server, person, "/v1/messages?limit=50")["messages"][::-1]
    assert [m["role"] for m in history].count("user") == 1
    texts = [b["text"] for m in history for b in m["blocks"] if b["type"] == "text"]
    assert texts[0] == "buy milk"
    if outcome[0] == "complete":
        assert texts[1:] == [SLOW["text"]]
    calls = [b for m in history for b in m["blocks"] if b["type"] == "tool_use"]
    results = [b for m in history for b in m["blocks"] if b["type"] == "tool_result"]
    assert [c["call_id"] for c in calls] == [r["call_id"] for r in results]
    if stage == "effect_started":
        assert [r["text"] for r in results] == [UNKNOWN]
    if stage == "effect_done":
        assert [r["text"] for r in results] == ["note done: milk"]
    assert len(effects.read_text().splitlines() if effects.exists() else []) == lines

    # The thread goes on.
    with Client(_ws(fresh_server), person.key) as client:
        assert client.ask("and bread", "second") == SLOW["text"]
    # A client hears of the end after the commit; the turn is settled a moment later.
    until = time.monotonic() + 10
    settled: list[dict[str, Any]] = []
    while settled != [{"open": 0, "all": 2, "undone": 0}] and time.monotonic() < until:
        settled = Residents({}, {}).rows(
            {"dsn": fresh_server.database_url},
            "select count(*) filter (where settled_at is null) as open, count(*) as all, "
            "(select count(*) from outbox where kind = 'continuum' and lane = 'turns') as undone "
            "from turns",
        )
    assert settled == [{"open": 0, "all": 2, "undone": 0}]
