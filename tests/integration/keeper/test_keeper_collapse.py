"""A segment from silence to memory: each step once, in order, and nobody waits for it."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from bench.provider_script import Behaviour, Failure, Script
from mira.actors.memory_keeper_parts import Step
from mira.llm.scripted import says
from mira.messages.segment import MemoriesStored
from mira.messages.stream import Completed
from mira.messages.turn import TrinketRendered, TurnStarted
from mira.store.database import Database
from mira.store.users import User
from tests.support.core import JumpingClock
from tests.support.keeper import Kept, answers, keeping
from tests.support.memory import OneEncoder
from tests.support.story import FACTS, STORY, TEXTS

pytestmark = pytest.mark.anyio

TRACE = (
    "I heard that the user's dog Rex turns three and that their sister Anna is coming over. "
    "Anna lives in Linz. I noted that she hates coriander."
)
PRECIS = "I learned of the dog Rex. Anna from Linz, who hates coriander, is coming."
GOOD: dict[str, Any] = {
    "trace": TRACE,
    "precis": PRECIS,
    "title": "Rex turns three, Anna visits",
    "complexity": 1,
}


def living(**others: Any) -> Script:
    return answers(**({"extraction": FACTS, "summary": GOOD} | others))


async def tell(kept: Kept, user: User) -> None:
    for words in STORY[::2]:
        assert isinstance(await kept.core.ask(user.id, words), Completed)


async def until_collapsed(kept: Kept, user: User) -> None:
    with anyio.fail_after(60):
        while True:
            states = await kept.rows(user.id, "select state from segments order by opened_at")
            if states[0]["state"] == "collapsed":
                await kept.settled()
                return
            kept.core.system.look_for_durable()
            await kept.core.system.workers.quiet()
            await kept.core.parts.clock.sleep(0.01)


async def left_behind(kept: Kept, user: User) -> dict[str, Any]:
    summaries = await kept.rows(user.id, "select title, trace, precis from summaries")
    [segment] = await kept.rows(
        user.id,
        "select state, title, extracted_at is not null as extracted, tools from segments "
        "order by opened_at limit 1",
    )
    return {"summaries": summaries, "texts": await kept.texts(user.id), **segment}


COLLAPSED = {
    "summaries": [{"title": GOOD["title"], "trace": TRACE, "precis": PRECIS}],
    "texts": TEXTS,
    "state": "collapsed",
    "title": GOOD["title"],
    "extracted": True,
    "tools": [],
}


async def test_silence_turns_a_segment_into_a_summary_and_memories_and_is_announced_in_order(
    database: Database, user: User, encoders: OneEncoder
) -> None:
    clock = JumpingClock()
    async with keeping(database, encoders, script=[says("Noted.")], clock=clock) as kept:
        kept.script(living())
        await tell(kept, user)
        clock.jump(minutes=121)
        await until_collapsed(kept, user)
        assert await left_behind(kept, user) == COLLAPSED
        said = [
            name for name in kept.core.events_heard.names()
            if name.startswith(("Segment", "Summary", "Manifest"))
        ]  # fmt: skip
        assert said == [
            "SegmentOpened", "SegmentIdle", "ManifestChanged", "SummaryReady", "ManifestChanged",
            "SegmentCollapsed",
        ]  # fmt: skip
        # One call for the summary, one for what is to be remembered, one for the links.
        calls = [one for one in await kept.calls(user.id) if one not in ("conversation",
                                                                         "subcortex")]  # fmt: skip
        assert calls == ["summary", "extraction", "links"]


async def test_the_next_segment_begins_with_the_summary_the_last_turns_and_where_it_ended(
    database: Database, user: User, encoders: OneEncoder
) -> None:
    async with keeping(database, encoders, script=[says("Noted.")]) as kept:
        kept.script(living())
        for n in range(4):
            await kept.core.ask(user.id, f"Filler number {n}.")
        await tell(kept, user)
        await kept.core.conversations.collapse(user.id)
        await until_collapsed(kept, user)
        await kept.core.ask(user.id, "Hello again.")
        request = kept.core.model.requests[-1]
        words = str(request.messages)
        assert TRACE in words
        assert STORY[0] in words
        assert STORY[2] in words
        assert "Filler number 3." not in words.split("mira:now")[0]
        assert GOOD["title"] in str(request.system)


async def test_a_summary_that_comes_late_takes_the_place_of_the_words_at_once(
    database: Database, user: User, encoders: OneEncoder
) -> None:
    async with keeping(database, encoders, script=[says("Noted.")]) as kept:
        down = Behaviour(error=Failure(status=503, message="later"))
        kept.script(living(summary=down))
        for n in range(12):
            await kept.core.ask(user.id, f"Filler number {n}.")
        await kept.core.conversations.collapse(user.id)
        await kept.core.ask(user.id, "Still here.")
        raw = str(kept.core.model.requests[-1].messages)
        # The last ten turns word for word, and no more of them.
        assert "Filler number 2." in raw
        assert "Filler number 11." in raw
        assert "Filler number 1." not in raw
        kept.script(living())
        await until_collapsed(kept, user)
        await kept.core.ask(user.id, "And now?")
        prompt = str(kept.core.model.requests[-1].messages)
        assert TRACE in prompt
        assert "Filler number 11." in prompt
        assert "Still here." in prompt


@pytest.mark.parametrize(
    "step", [Step.PLANNED, Step.TOLD, Step.STORED, Step.ANSWERED, Step.PREPARED, Step.LINKED]
)
async def test_broken_off_at_any_step_a_collapse_leaves_one_summary_and_one_set_of_memories(
    database: Database, user: User, encoders: OneEncoder, step: Step
) -> None:
    async with keeping(database, encoders, script=[says("Noted.")]) as kept:
        kept.script(living())
        await tell(kept, user)
        kept.crashes.append(step)
        await kept.core.conversations.collapse(user.id)
        await until_collapsed(kept, user)
        with anyio.fail_after(40):
            while not (await left_behind(kept, user))["extracted"]:
                await kept.settled()
        assert kept.crashes == []
        assert await left_behind(kept, user) == COLLAPSED


async def test_a_provider_that_is_away_for_long_costs_no_attempt_and_loses_nothing(
    database: Database, user: User, encoders: OneEncoder
) -> None:
    async with keeping(database, encoders, script=[says("Noted.")]) as kept:
        kept.script(living(summary=Behaviour(error=Failure(status=503, message="away"))))
        await tell(kept, user)
        await kept.core.conversations.collapse(user.id)
        with anyio.fail_after(40):
            while len(kept.double.bodies) < 24:
                kept.core.system.look_for_durable()
                await kept.core.parts.clock.sleep(0.01)
        [row] = await kept.rows(user.id, "select attempts from outbox where lane = 'summaries'")
        assert row["attempts"] == 0
        assert isinstance(await kept.core.ask(user.id, "Are you there?"), Completed)
        kept.script(living())
        await until_collapsed(kept, user)
        assert (await left_behind(kept, user))["summaries"] == COLLAPSED["summaries"]


async def test_what_was_learned_is_recalled_when_the_next_segment_asks_for_it(
    database: Database, user: User, encoders: OneEncoder
) -> None:
    async with keeping(database, encoders, script=[says("Noted.")]) as kept:
        kept.script(living())
        await tell(kept, user)
        await kept.core.conversations.collapse(user.id)
        await until_collapsed(kept, user)
        done = await kept.core.ask(user.id, "Where does Anna live, and what does she hate?")
        assert isinstance(done, Completed)
        [anna] = await kept.rows(user.id, "select short_id from memories where text = $1", TEXTS[2])
        assert anna["short_id"] in done.memories.surfaced
        now = str(kept.core.model.requests[-1].messages[-1])
        assert TEXTS[2] in now
        # The memories in context are the door's to remember, as long as the segment lasts.
        heard = kept.core.events_heard.names()
        assert heard.count("WorkingStateChanged") == 1
        await kept.core.conversations.collapse(user.id)
        assert kept.core.events_heard.names().count("WorkingStateChanged") == 2


async def test_what_a_turn_does_is_told_in_the_order_in_which_it_happens(
    database: Database, user: User, encoders: OneEncoder
) -> None:
    async with keeping(database, encoders, script=[says("Noted.")]) as kept:
        kept.script(living())
        await tell(kept, user)
        # The end of a turn is told before the next is taken, and after its client knows.
        await kept.core.ask(user.id, "Thank you.")
        heard = kept.core.events_heard
        first, second, _ = (
            [type(e).__name__ for e in heard.heard if getattr(e, "turn_id", None) == turn_id]
            for turn_id in dict.fromkeys(
                e.turn_id for e in heard.heard if isinstance(e, TurnStarted)
            )
        )
        assert first[:3] == ["UseDayAdvanced", "TurnStarted", "PromptComposed"]
        assert set(first[3:-1]) == {"TrinketRendered"}
        assert first[-1] == "TurnCompleted"
        assert [one for one in second if one != "TrinketRendered"] == [
            "TurnStarted", "PromptComposed", "TurnCompleted",
        ]  # fmt: skip
        # Of the sections only those are told that are others than before.
        told = [e.name for e in heard.heard if isinstance(e, TrinketRendered)]
        assert told.count("BasePrompt") == 1


async def test_what_is_remembered_of_a_segment_is_announced_once_and_after_its_end(
    database: Database, user: User, encoders: OneEncoder
) -> None:
    async with keeping(database, encoders, script=[says("Noted.")]) as kept:
        kept.script(living())
        await tell(kept, user)
        ended = await kept.core.conversations.collapse(user.id)
        await until_collapsed(kept, user)
        with anyio.fail_after(20):
            while await kept.rows(user.id, "select from outbox where lane = 'segments'"):
                await kept.core.parts.clock.sleep(0.01)
        heard = kept.core.events_heard
        [stored] = [one for one in heard.heard if isinstance(one, MemoriesStored)]
        assert (stored.user_id, stored.segment_id, stored.count) == (user.id, ended, len(TEXTS))
        assert heard.names()[-2:] == ["SegmentCollapsed", "MemoriesStored"]
        # What was nothing new is not announced.
        await kept.extract(user.id, ended)
        assert await kept.texts(user.id) == TEXTS
        assert heard.names().count("MemoriesStored") == 1


async def test_all_that_fell_due_while_nobody_was_there_is_done_once_at_the_return(
    database: Database, user: User, encoders: OneEncoder
) -> None:
    clock = JumpingClock()
    asked = {"summary": 1, "extraction": 1, "links": 1}
    rolled = "select last_run_use_day as day from memory_jobs where job = 'roll_over'"

    async def spent(kept: Kept) -> dict[str, int]:
        made = await kept.calls(user.id)
        return {purpose: made.count(purpose) for purpose in asked}

    async def nothing_due(kept: Kept) -> None:
        left = "select from outbox where user_id = $1 and due_at <= $2"
        with anyio.fail_after(40):
            while await kept.rows(user.id, left, user.id, clock.now()):
                kept.core.system.look_for_durable()
                await kept.core.system.workers.quiet()
                await clock.sleep(0.01)

    def heard(kept: Kept) -> list[str]:
        every = kept.core.events_heard.heard
        return [type(e).__name__ for e in every if getattr(e, "user_id", None) == user.id]

    async with keeping(database, encoders, script=[says("Noted.")], clock=clock) as kept:
        kept.script(living())
        await tell(kept, user)
        await nothing_due(kept)
        assert await spent(kept) == dict.fromkeys(asked, 0)
    # The process is gone, and so is the user, for longer than any timer waits.
    clock.jump(days=9)
    async with keeping(database, encoders, script=[says("Noted.")], clock=clock) as kept:
        kept.script(living())
        await until_collapsed(kept, user)
        assert await left_behind(kept, user) == COLLAPSED
        assert await spent(kept) == asked
        # Days on which nobody speaks are none.
        assert await kept.rows(user.id, rolled) == [{"day": 1}]
        assert isinstance(await kept.core.ask(user.id, "I am back."), Completed)
        await nothing_due(kept)
        for name in ("SegmentIdle", "SegmentCollapsed", "MemoriesStored", "UseDayAdvanced"):
            assert heard(kept).count(name) == 1, name
        assert await kept.rows(user.id, rolled) == [{"day": 2}]
        assert await spent(kept) == asked
    # Whoever comes back once more finds nothing left to do.
    async with keeping(database, encoders, script=[says("Noted.")], clock=clock) as kept:
        kept.script(living())
        kept.core.system.look_for_durable()
        await kept.look_around(user.id)
        await nothing_due(kept)
        assert await spent(kept) == asked
        assert heard(kept) == []
        assert await kept.texts(user.id) == TEXTS
