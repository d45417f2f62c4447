"""The process is killed with SIGKILL while a segment collapses, and started again."""

from __future__ import annotations

import time
from typing import Any

import httpx2
import msgspec

from bench.provider_script import Behaviour
from tests.conftest import Place
from tests.support.client import Client
from tests.support.keeper import answers
from tests.support.processes import Residents, ServerProcess
from tests.support.story import FACTS, STORY, TEXTS

TOLD = {
    "trace": "I heard that the dog Rex turns three and that Anna is coming over. "
    "Anna lives in Linz. I noted that she hates coriander.",
    "precis": "I learned of the dog Rex. Anna from Linz is coming.",
    "title": "Rex turns three, Anna visits",
    "complexity": 1,
}


def _script(slow: str = "") -> dict[str, Any]:
    """A model that answers everything at once, but for the question named `slow`."""
    given = {"summary": TOLD, "extraction": FACTS}
    behaviours = {
        name: Behaviour(
            text=msgspec.json.encode(value).decode(), first_token_ms=60_000 if name == slow else 0
        )
        for name, value in given.items()
    }
    script: dict[str, Any] = msgspec.to_builtins(answers(**behaviours))
    script["default"] = {"text": "Noted."}
    return script


def _until_one_is_thinking(server: ServerProcess) -> None:
    end = time.monotonic() + 60
    while server.double.state()["open"] != 1:
        assert time.monotonic() < end, server.output()[-4000:]
        time.sleep(0.02)


def test_killed_again_and_again_a_collapse_leaves_one_summary_and_one_set_of_memories(
    fresh_server: ServerProcess, place: Place
) -> None:
    residents = Residents(place.app, place.engine)
    person = residents.add("ada")
    double = fresh_server.double
    double.script(_script("summary"))
    direct = {"MIRA_MODEL_EXTRACTION": "openai:double", "OPENAI_BASE_URL": double.url}
    fresh_server.start(**direct)
    with Client(fresh_server.url.replace("http", "ws") + "/v1/ws", person.key) as client:
        for number, words in enumerate(STORY[::2]):
            client.ask(words, f"r{number}")
    signed = {"Authorization": f"Bearer {person.key}"}
    ended = httpx2.post(f"{fresh_server.url}/v1/segments/active/collapse", headers=signed)
    assert ended.json()["state"] == "collapsing"
    # In the middle of the summary, then in the middle of what is to be remembered.
    _until_one_is_thinking(fresh_server)
    fresh_server.kill()
    double.script(_script("extraction"))
    fresh_server.start(**direct)
    _until_one_is_thinking(fresh_server)
    fresh_server.kill()
    double.script(_script())
    fresh_server.start(**direct)

    end = time.monotonic() + 60
    while True:
        [segment] = residents.rows(
            place.owner,
            "select g.state, g.title, g.extracted_at is not null as extracted, "
            "(select count(*) from summaries s where s.segment_id = g.id) as summaries, "
            "(select array_agg(text order by doc) from memories m where m.source_segment = g.id) "
            "as texts from segments g where g.user_id = $1",
            person.id,
        )
        if segment["extracted"]:
            break
        assert time.monotonic() < end, fresh_server.output()[-4000:]
        time.sleep(0.05)
    assert dict(segment) == {
        "state": "collapsed",
        "title": TOLD["title"],
        "extracted": True,
        "summaries": 1,
        "texts": TEXTS,
    }
    fresh_server.stop()
    assert residents.rows(place.owner, "select error from dead_letters") == []
