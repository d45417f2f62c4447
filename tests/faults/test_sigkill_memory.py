"""The process is killed with SIGKILL while it learns from a conversation, and started again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import msgspec

from bench.provider_script import Behaviour
from mira.actors.memory_keeper_parts import EXTRACTION, KIND
from mira.messages.memory import ExtractSegment
from mira.messages.wire import encode_durable
from mira.store.database import Database
from tests.conftest import Place
from tests.support.keeper import answers
from tests.support.processes import Residents, ServerProcess, run_apart
from tests.support.story import FACTS, STORY, TEXTS, tell_story


def _until(condition: Callable[[], bool], server: ServerProcess) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, server.output()[-4000:]
        time.sleep(0.02)


async def _told(place: Place, user_id: UUID) -> None:
    """A story that has ended, and the word to learn from it at once."""
    database = await Database.open(place.app, place.engine, size=2)
    try:
        segment_id = await tell_story(database, user_id, *STORY)
        async with database.user(user_id) as tx:
            await tx.execute(
                "insert into outbox "
                "(user_id, kind, address, lane, key, payload, due_at, created_at) "
                "values ($1::uuid, $2, $1::uuid::text, $3, $4, $5::jsonb, now(), now())",
                user_id, KIND, EXTRACTION, str(segment_id),
                encode_durable(ExtractSegment(segment_id=segment_id, now=True)),
            )  # fmt: skip
    finally:
        await database.aclose()


def _script(**extraction: Any) -> dict[str, Any]:
    slow = msgspec.structs.replace(
        Behaviour(text=msgspec.json.encode(FACTS).decode()), **extraction
    )
    script: dict[str, Any] = msgspec.to_builtins(answers(extraction=slow))
    return script


def test_killed_while_a_model_reads_a_segment_all_of_it_is_learned_once_after_the_restart(
    fresh_server: ServerProcess, place: Place
) -> None:
    residents = Residents(place.app, place.engine)
    person = residents.add("ada")
    run_apart(_told(place, person.id))
    double = fresh_server.double
    double.script(_script(first_token_ms=60_000))
    fresh_server.start()
    _until(lambda: double.state()["open"] == 1, fresh_server)
    fresh_server.kill()
    double.script(_script())
    fresh_server.start()

    def extracted() -> bool:
        rows = residents.rows(place.owner, "select extracted_at from segments where user_id = $1",
                              person.id)  # fmt: skip
        return rows[0]["extracted_at"] is not None

    _until(extracted, fresh_server)
    memories = residents.rows(
        place.owner,
        "select m.text, s.mention_count from memories m "
        "join memory_scores s on s.memory_id = m.id where m.user_id = $1 order by m.doc",
        person.id,
    )
    assert [row["text"] for row in memories] == TEXTS
    assert [row["mention_count"] for row in memories] == [0, 0, 0]
    fresh_server.stop()
    left = residents.rows(place.owner, "select error from dead_letters")
    assert left == []
