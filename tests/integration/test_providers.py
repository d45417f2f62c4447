"""The same conversation with each provider, and from one to the other when the first is away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.conftest import Place
from tests.support.client import CLOSING, Client, spoken
from tests.support.processes import DoubleProcess, Person, Residents, ServerProcess


@pytest.fixture
def person(place: Place) -> Person:
    return Residents(place.app, place.engine).add("ada")


@pytest.fixture
def second_double() -> Iterator[DoubleProcess]:
    """Another provider at another address."""
    started = DoubleProcess()
    started.reset()
    yield started
    started.close()


def _ws(server: ServerProcess) -> str:
    return "ws" + server.url.removeprefix("http") + "/v1/ws"


def _kinds(request: dict[str, Any]) -> list[str]:
    return [m["role"] for m in request["messages"]]


def test_a_conversation_with_tools_over_an_openai_compatible_endpoint(
    fresh_server: ServerProcess, person: Person, tmp_path: Path
) -> None:
    double = fresh_server.double
    call = {"name": "note", "arguments": {"text": "milk"}}
    double.script({"queue": [{"text": "", "tools": [call]}], "default": {"text": "Noted."}})
    fresh_server.start(
        MIRA_MODEL="openai:double",
        OPENAI_BASE_URL=double.url,
        MIRA_TEST_EFFECTS=str(tmp_path / "effects"),
    )
    with Client(_ws(fresh_server), person.key) as client:
        client.say("note milk", "r1")
        frames = client.until(*CLOSING)
        assert "reply" in frames[-1], f"{frames[-1]}\n{fresh_server.output()[-4000:]}"
        assert (frames[-1]["reply"], frames[-1]["tools_used"]) == ("Noted.", ["note"])
        double.script({"default": {"echo": True}})
        assert client.ask("thank you", "r2").endswith("thank you")
    assert (tmp_path / "effects").read_text() == "note: milk\n"
    assert _kinds(double.requests()[-1]) == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    rows = Residents({}, {}).rows(
        {"dsn": fresh_server.database_url},
        "select distinct provider, model from model_calls where purpose = 'conversation'",
    )
    assert rows == [{"provider": "openai", "model": "double"}]


def test_when_the_first_provider_is_away_the_second_answers_and_the_client_is_told(
    fresh_server: ServerProcess, second_double: DoubleProcess, person: Person
) -> None:
    away = {"error": {"status": 529, "type": "overloaded_error", "retry_after": 0.01}}
    fresh_server.double.script({"default": away})
    second_double.script({"default": {"text": "I stand in."}})
    fresh_server.start(
        MIRA_FALLBACK_MODEL="openai:other",
        OPENAI_BASE_URL=second_double.url,
        OPENAI_API_KEY="sk-not-a-real-key",
    )
    with Client(_ws(fresh_server), person.key) as client:
        client.say("hello", "r1")
        frames = client.until(*CLOSING)
        assert frames[-1]["type"] == "complete", frames[-1]
        assert spoken(frames) == "I stand in."
        notices = {f["kind"]: f["detail"] for f in frames if f["type"] == "notice"}
        assert notices["provider_switch"].endswith(". openai:other answers now.")
        assert not any(".." in told for told in notices.values())
        # Both models' calls are in the books, the failed ones too.
        rows = Residents({}, {}).rows(
            {"dsn": fresh_server.database_url},
            "select provider, error is null as ok from model_calls "
            "where purpose = 'conversation' group by 1, 2 order by 1",
        )
        assert rows == [
            {"provider": "anthropic", "ok": False}, {"provider": "openai", "ok": True},
        ]  # fmt: skip
    log = fresh_server.output()
    assert "hello" not in log
    assert "I stand in." not in log
    assert "sk-not-a-real-key" not in log


def test_a_key_that_is_set_while_the_server_runs_counts_at_once(
    fresh_server: ServerProcess, person: Person
) -> None:
    fresh_server.start(
        MIRA_MODEL="", ANTHROPIC_API_KEY="", ANTHROPIC_BASE_URL="",
        OPENAI_BASE_URL=fresh_server.double.url,
    )  # fmt: skip
    with httpx2.Client(
        base_url=fresh_server.url,
        headers={"Authorization": f"Bearer {fresh_server.admin_token}"}, timeout=30,
    ) as http:  # fmt: skip

        def answering() -> str:
            models = http.get("/v1/status").json()["models"]
            return next(str(m["model"]) for m in models if m["purpose"] == "conversation")

        assert answering().startswith("openai:")
        put = http.put("/v1/secrets/anthropic_api_key", json={"value": "sk-not-a-real-key"})
        assert put.status_code < 300, put.text
        assert answering().startswith("anthropic:")
        assert http.delete("/v1/secrets/anthropic_api_key").status_code < 300
        assert answering().startswith("openai:")
    assert "sk-not-a-real-key" not in fresh_server.output()
