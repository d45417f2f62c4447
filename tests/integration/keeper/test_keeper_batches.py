"""Extraction in batches of the provider: the same rows as by direct calls, whatever goes wrong."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest

from bench.provider_script import BatchFault, Behaviour, Failure
from mira.actors.memory_keeper_parts import Step
from mira.messages.memory import ExtractSegment
from mira.store.database import Database
from mira.store.users import User
from tests.support.keeper import Kept, answers, keeping
from tests.support.memory import OneEncoder
from tests.support.story import FACTS, ROWS, STORY, TEXTS, tell_story

pytestmark = pytest.mark.anyio
At = Literal["create", "retrieve", "list", "results", "cancel"]


@pytest.fixture
async def kept(database: Database, encoders: OneEncoder) -> AsyncIterator[Kept]:
    async with keeping(database, encoders, provider="anthropic") as running:
        yield running


async def _story(kept: Kept, user: User, *, now: bool = False) -> None:
    await kept.extract(user.id, await tell_story(kept.database, user.id, *STORY), now=now)


async def _batches(kept: Kept, user: User) -> list[dict[str, Any]]:
    return await kept.rows(
        user.id, "select state, provider_id, last_error from batches order by created_at, id"
    )


async def _is_learned(kept: Kept, user: User) -> None:
    """All of the story is in memory, once, and its segment is done."""
    rows = await kept.rows(user.id, ROWS)
    assert [row["text"] for row in rows] == TEXTS
    assert all(row["mention_count"] == 0 for row in rows)
    [segment] = await kept.rows(user.id, "select extracted_at from segments")
    assert segment["extracted_at"] is not None


def _protocols(kept: Kept) -> list[str]:
    """How each question of extraction reached the provider: batch, or anthropic for a call."""
    return [
        request["protocol"]
        for request in kept.double.requests
        if "what the user said in these lines" in str(request["body"])
    ]


async def test_a_batch_leaves_the_same_rows_as_direct_calls(
    kept: Kept, user: User, other: User
) -> None:
    async with kept.database.engine() as tx:
        await tx.execute("update users set timezone = 'Europe/Vienna' where id = $1", other.id)
    kept.script(answers(extraction=FACTS), polls=2)
    await _story(kept, user)
    await _story(kept, other, now=True)
    assert _protocols(kept) == ["batch", "anthropic"]
    assert await kept.rows(user.id, ROWS) == await kept.rows(other.id, ROWS)
    books = (
        "select purpose, provider, model, input_tokens, output_tokens, reported, error "
        "from model_calls where purpose = 'extraction'"
    )
    assert await kept.rows(user.id, books) == await kept.rows(other.id, books)
    chunk = "select ordinal, state, attempts, calls, input_tokens, output_tokens, last_error "
    chunk += "from extraction_chunks"
    assert await kept.rows(user.id, chunk) == await kept.rows(other.id, chunk)
    [batch] = await _batches(kept, user)
    assert batch["state"] == "ended"
    assert await _batches(kept, other) == []


async def test_without_a_key_there_are_no_batches(
    database: Database, user: User, encoders: OneEncoder
) -> None:
    async with keeping(database, encoders, provider="anthropic", keyed=False) as kept:
        kept.script(answers(extraction=FACTS))
        await _story(kept, user)
        assert _protocols(kept) == ["anthropic"]
        await _is_learned(kept, user)


async def test_a_batch_that_cannot_be_created_now_is_created_later_and_once(
    kept: Kept, user: User
) -> None:
    kept.script(answers(extraction=FACTS), BatchFault(at="create", status=529, times=3))
    await _story(kept, user)
    await _is_learned(kept, user)
    assert len(kept.double.batches.held) == 1
    [chunk] = await kept.rows(user.id, "select attempts, calls from extraction_chunks")
    assert chunk == {"attempts": 0, "calls": 1}


async def test_a_batch_whose_creation_was_answered_to_nobody_is_found_not_made_again(
    kept: Kept, user: User
) -> None:
    kept.script(answers(extraction=FACTS), BatchFault(at="create", how="lost"), polls=0)
    await _story(kept, user)
    await _is_learned(kept, user)
    assert len(kept.double.batches.held) == 1
    assert _protocols(kept) == ["batch"]


async def test_a_lost_batch_that_is_still_in_progress_is_waited_for(
    kept: Kept, user: User, other: User
) -> None:
    kept.script(answers(extraction=FACTS))
    # Another one of the same account, which is nothing to do with it.
    await _story(kept, other)
    kept.script(answers(extraction=FACTS), BatchFault(at="create", how="lost"), polls=3)
    await _story(kept, user)
    await _is_learned(kept, user)
    assert len(kept.double.batches.held) == 2


@pytest.mark.parametrize(
    "step", [Step.INTENDED, Step.SUBMITTING, Step.CREATED, Step.SUBMITTED, Step.RESULT]
)
async def test_a_keeper_that_ends_between_two_steps_of_a_batch_loses_and_repeats_nothing(
    kept: Kept, user: User, step: Step
) -> None:
    kept.script(answers(extraction=FACTS), polls=1)
    kept.crashes = [step]
    await _story(kept, user)
    await _is_learned(kept, user)
    # Whatever was handed over is not handed over again.
    assert len(kept.double.batches.held) == 1
    assert _protocols(kept) == ["batch"]
    assert kept.crashes == []
    [batch] = await _batches(kept, user)
    assert batch["state"] == "ended"


@pytest.mark.parametrize(
    "fault",
    [
        BatchFault(at="retrieve", status=500, times=2),
        BatchFault(at="results", status=503, times=2),
        BatchFault(at="results", how="cut", after=0, times=2),
        BatchFault(at="results", how="short", after=0, times=2),
    ],
    ids=["retrieve fails", "results fail", "results break off", "results are missing"],
)
async def test_a_provider_that_cannot_tell_now_is_asked_again_at_no_cost(
    kept: Kept, user: User, fault: BatchFault
) -> None:
    kept.script(answers(extraction=FACTS), fault)
    await _story(kept, user)
    await _is_learned(kept, user)
    assert _protocols(kept) == ["batch"]
    [chunk] = await kept.rows(user.id, "select attempts, calls from extraction_chunks")
    assert chunk == {"attempts": 0, "calls": 1}


async def test_of_results_that_break_off_what_came_is_kept(kept: Kept, user: User) -> None:
    def said(word: str) -> Behaviour:
        text = f'{{"memories": [{{"lines": [1], "text": "The user spoke of {word} at length."}}]}}'
        return Behaviour(text=text, contains=f"{word} {word}")

    words = ("oaks", "elms", "firs")
    script = answers()
    script.rules = [*map(said, words), *script.rules]
    kept.script(script, BatchFault(at="results", how="cut", after=2))
    long = [w for word in words for w in (f"{word} " * 2000, "Go on.")]
    segment = await tell_story(kept.database, user.id, *long)
    await kept.extract(user.id, segment)
    assert await kept.texts(user.id) == [f"The user spoke of {word} at length." for word in words]
    chunks = await kept.rows(user.id, "select calls, attempts from extraction_chunks")
    assert chunks == [{"calls": 1, "attempts": 0}] * 3


@pytest.mark.parametrize("outcome", ["errored", "expired", "canceled"])
async def test_an_item_that_failed_goes_back_to_the_queue_and_after_three_times_is_called(
    kept: Kept, user: User, outcome: Any
) -> None:
    kept.script(answers(extraction=FACTS), outcomes=[outcome] * 3)
    await _story(kept, user)
    await _is_learned(kept, user)
    assert _protocols(kept) == ["batch"] * 3 + ["anthropic"]
    assert [b["state"] for b in await _batches(kept, user)] == ["ended"] * 3
    [chunk] = await kept.rows(user.id, "select attempts, calls from extraction_chunks")
    assert chunk == {"attempts": 3, "calls": 4}


async def test_a_batch_that_has_vanished_is_made_again_and_the_reason_is_kept(
    kept: Kept, user: User
) -> None:
    kept.script(answers(extraction=FACTS), polls=3)
    kept.act[Step.SUBMITTED] = kept.double.batches.held.clear
    await _story(kept, user)
    await _is_learned(kept, user)
    first, second = await _batches(kept, user)
    assert (first["state"], second["state"]) == ("gone", "ended")
    assert "does not know it" in first["last_error"]


@pytest.mark.parametrize("status", [404, 400, 401])
async def test_where_batches_are_refused_the_segment_is_asked_for_directly(
    kept: Kept, user: User, status: int
) -> None:
    kept.script(answers(extraction=FACTS), BatchFault(at="create", status=status, type="no"))
    await _story(kept, user)
    await _is_learned(kept, user)
    assert _protocols(kept) == ["anthropic"]
    [batch] = await _batches(kept, user)
    assert batch["state"] == "gone"


@pytest.mark.parametrize("state", ["intent", "submitted"])
async def test_what_is_not_answered_within_a_day_is_given_up_and_asked_for_again(
    kept: Kept, user: User, state: str
) -> None:
    faults = [BatchFault(at="create", status=500, times=2)] if state == "intent" else []
    kept.script(answers(extraction=FACTS), *faults, polls=10**6)
    segment = await tell_story(kept.database, user.id, *STORY)
    await kept.tell(user.id, ExtractSegment(segment_id=segment), "extraction", str(segment))
    await kept.until(Step.SUBMITTING if state == "intent" else Step.SUBMITTED)
    async with kept.database.user(user.id) as tx:
        await tx.execute(
            "update batches set created_at = created_at - interval '25 hours', "
            "submitted_at = submitted_at - interval '25 hours'"
        )
    kept.double.script.batches.polls = 0
    await kept.settled()
    await _is_learned(kept, user)
    first, second = await _batches(kept, user)
    assert (first["state"], second["state"]) == ("gone", "ended")
    if state == "submitted":
        held = next(iter(kept.double.batches.held.values()))
        assert held.cancelled


async def test_an_answer_of_a_batch_that_cannot_be_read_is_asked_for_once_more_directly(
    kept: Kept, user: User
) -> None:
    kept.script(answers(extraction=("Sorry?", FACTS)))
    kept.double.script.default = Behaviour(text="nothing")
    segment = await tell_story(kept.database, user.id, *STORY)
    script = kept.double.script
    script.rules.insert(0, Behaviour(text=json.dumps(FACTS), contains="could not be used"))
    await kept.extract(user.id, segment)
    await _is_learned(kept, user)
    [chunk] = await kept.rows(user.id, "select attempts, calls from extraction_chunks")
    assert chunk == {"attempts": 0, "calls": 2}


async def test_a_segment_wanted_now_does_not_wait_for_its_batch_and_is_not_learned_twice(
    kept: Kept, user: User
) -> None:
    kept.script(answers(extraction=FACTS), polls=10**6)
    segment = await tell_story(kept.database, user.id, *STORY)
    await kept.tell(user.id, ExtractSegment(segment_id=segment), "extraction", str(segment))
    await kept.until(Step.SUBMITTED)
    await kept.tell(
        user.id, ExtractSegment(segment_id=segment, now=True), "extraction", str(segment)
    )
    await kept.until(Step.STORED)
    for held in kept.double.batches.held.values():
        held.polls = 0
    await kept.settled()
    await _is_learned(kept, user)
    [batch] = await _batches(kept, user)
    assert batch["state"] == "ended"


async def test_a_provider_that_is_down_for_everything_loses_nothing(kept: Kept, user: User) -> None:
    down = Behaviour(error=Failure(status=503))
    kept.script(
        answers(extraction=(*[down] * 4, FACTS)),
        BatchFault(at="create", status=404),
    )
    await _story(kept, user)
    await _is_learned(kept, user)
