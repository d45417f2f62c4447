"""A long segment: its older part becomes a brief, its newest turns stay, and nothing is lost."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from mira.actors.memory_keeper_parts import BRIEFS, Step
from mira.llm.scripted import says
from mira.messages.content import Text
from mira.messages.memory import CompressSegment
from mira.messages.stream import Completed
from mira.store.database import Database
from mira.store.users import User
from tests.support.keeper import Kept, answers, keeping, memories_of
from tests.support.memory import OneEncoder

pytestmark = pytest.mark.anyio

NOTE = {
    "state": ["We plan the garden of the house in Linz."],
    "preferences": ["The user wants no gravel."],
    "decisions": [],
    "references": ["Order number K-4711."],
    "open": ["The fence is not chosen."],
}
LATER = {"state": ["The fence is chosen: larch."], "references": ["Order number K-4711."]}
#: About 480 tokens; the live turns of a test may take 4,000 before they are compressed.
LONG = "The beds are two metres wide and the path turns left behind the old pear tree. " * 22


def writing(database: Database, encoders: OneEncoder) -> Any:
    """A keeper whose model reads the whole of what is compressed at once."""
    return keeping(database, encoders, provider="anthropic", script=[says("Good.")])


def compressing(*notes: Any, **others: Any) -> Any:
    return answers(extraction=memories_of(), brief=notes, **others)


async def speak(kept: Kept, user: User, *numbers: int) -> None:
    for n in numbers:
        assert isinstance(await kept.core.ask(user.id, f"Message number {n}. {LONG}"), Completed)
        await kept.settled()


async def briefs(kept: Kept, user: User) -> list[dict[str, Any]]:
    return await kept.rows(user.id, "select * from briefs order by through_seq")


async def until_the_door_knows(kept: Kept, user: User) -> None:
    with anyio.fail_after(20):
        while await kept.rows(user.id, "select 1 from outbox where lane = 'segments'"):
            await kept.core.system.workers.quiet()
            await anyio.lowlevel.checkpoint()


def verbatim(kept: Kept) -> list[int]:
    """The messages that the last prompt holds word for word, beside what was recalled of others."""
    blocks = [b for said in kept.core.model.requests[-1].messages for b in said.blocks]
    texts = [b.text for b in blocks if isinstance(b, Text)]
    return [int(text.split()[2][:-1]) for text in texts if text.startswith("Message number")]


def last_prompt(kept: Kept) -> str:
    return str(kept.core.model.requests[-1].messages)


async def test_the_older_part_of_a_long_segment_is_replaced_by_a_brief_in_the_prompt_alone(
    database: Database, user: User, encoders: OneEncoder
) -> None:
    async with writing(database, encoders) as kept:
        kept.script(compressing(NOTE))
        await speak(kept, user, *range(1, 8))
        assert await briefs(kept, user) == []
        await speak(kept, user, 8, 9)
        await until_the_door_knows(kept, user)
        [brief] = await briefs(kept, user)
        assert "Order number K-4711." in brief["text"]
        assert brief["model"]
        await speak(kept, user, 10)
        assert "no gravel" in last_prompt(kept)
        assert brief["through_seq"] > 1
        assert verbatim(kept) == list(range(brief["through_seq"] + 1, 11))
        [stored] = await kept.rows(user.id, "select count(*) as n from messages")
        assert stored["n"] == 20


async def test_a_new_brief_is_made_from_the_old_one_and_the_words_of_the_turns_since(
    database: Database, user: User, encoders: OneEncoder
) -> None:
    async with writing(database, encoders) as kept:
        kept.script(compressing(NOTE, LATER))
        with anyio.fail_after(60):
            n = 0
            while len(await briefs(kept, user)) < 2:
                n += 1
                await speak(kept, user, n)
                await until_the_door_knows(kept, user)
        first, second = await briefs(kept, user)
        _, asked = kept.asked("brief")
        assert "no gravel" in asked
        assert f"number {first['through_seq']}." not in asked
        assert f"number {first['through_seq'] + 1}." in asked
        assert f"number {second['through_seq']}." in asked
        await speak(kept, user, n + 1)
        assert "larch" in last_prompt(kept)
        assert "no gravel" not in last_prompt(kept)


async def test_a_brief_is_made_once_wherever_the_work_is_broken_off(
    database: Database, user: User, encoders: OneEncoder
) -> None:
    for step in (Step.PLANNED, Step.ANSWERED, Step.STORED):
        async with writing(database, encoders) as kept:
            kept.script(compressing(NOTE))
            kept.crashes.append(step)
            await speak(kept, user, *range(1, 10))
            await until_the_door_knows(kept, user)
            assert kept.crashes == []
            assert len(await briefs(kept, user)) == 1
            await kept.core.conversations.collapse(user.id)
        async with database.user(user.id) as tx:
            await tx.execute("delete from briefs")
            await tx.execute("delete from outbox")


async def test_an_answer_without_a_note_is_asked_for_again_and_a_segment_that_has_ended_is_left(
    database: Database, user: User, encoders: OneEncoder
) -> None:
    async with writing(database, encoders) as kept:
        kept.script(compressing("I am sorry, I cannot do that.", NOTE))
        await speak(kept, user, *range(1, 10))
        await until_the_door_knows(kept, user)
        assert len(await briefs(kept, user)) == 1
        asked = len(kept.asked("brief"))
        segment = await kept.core.conversations.collapse(user.id)
        await kept.tell(user.id, CompressSegment(segment_id=segment, through_seq=9), BRIEFS)
        await kept.settled()
        assert len(kept.asked("brief")) == asked


async def test_a_door_that_comes_to_life_again_knows_the_brief(
    database: Database, user: User, encoders: OneEncoder
) -> None:
    async with writing(database, encoders) as kept:
        kept.script(compressing(NOTE))
        await speak(kept, user, *range(1, 10))
        await until_the_door_knows(kept, user)
    async with writing(database, encoders) as kept:
        kept.script(compressing(NOTE))
        await speak(kept, user, 10)
        assert "no gravel" in last_prompt(kept)
        assert 1 not in verbatim(kept)
        assert verbatim(kept)[-1] == 10
