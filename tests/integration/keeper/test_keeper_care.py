"""What is done every seven use-days: memories merged, fading ones looked at, names made one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import anyio
import pytest

from mira.actors.memory_keeper_parts import CARE, DAYS, Step
from mira.clock import SystemClock
from mira.memory.model import EntityName, NewMemory
from mira.messages.base import Message
from mira.messages.memory import (
    Consolidate,
    MergeEntities,
    RefreshDated,
    ReviewFloor,
    RollOverUseDay,
)
from mira.messages.stream import Completed
from mira.store.database import Database
from mira.store.users import User
from tests.conftest import Place
from tests.support.core import JumpingClock
from tests.support.keeper import Kept, answers, keeping
from tests.support.memory import OneEncoder, Remembering, real_encoders
from tests.support.processes import run_apart

pytestmark = pytest.mark.anyio

RENTS = (
    "The user pays 900 euros of rent.",
    "The user's rent is 900 euros a month.",
    "The user pays a monthly rent of 900 euros for the flat.",
)
MERGED = "The user pays a monthly rent of 900 euros for the flat they live in."


async def add(kept: Kept, user: User, *texts: str, about: tuple[str, str] | None = None) -> None:
    for text in texts:
        entities = (EntityName(*about),) if about else ()
        new = NewMemory(text=text, source="user", entities=entities)
        await kept.parts.memories.create(user.id, new, actor="user")
    async with kept.database.user(user.id) as tx:
        await tx.execute("update memory_scores set integrated_at = now()")


async def live(kept: Kept, user: User, days: int) -> None:
    """So many use-days pass."""
    async with kept.database.user(user.id) as tx:
        await tx.execute(
            "update conversations set use_days = use_days + $2 where user_id = $1", user.id, days
        )


async def do(kept: Kept, user: User, message: Message) -> None:
    await kept.tell(user.id, message, CARE, type(message).__name__)
    await kept.settled()


async def refs(kept: Kept, user: User, *texts: str) -> list[str]:
    found = await kept.refs(user.id)
    return [found[text] for text in texts]


def edit_elsewhere(place: Place, user: User, ref: str, text: str) -> None:
    """The user changes a memory, in a connection of their own."""

    async def edit() -> None:
        async with real_encoders() as encoders:
            database = await Database.open(place.app, place.engine, size=1)
            try:
                one = Remembering(database, encoders).memories
                standing = await one.get(user.id, ref)
                await one.edit(user.id, ref, version=standing.version, text=text, actor="user")
            finally:
                await database.aclose()

    run_apart(edit())


async def merging(kept: Kept, user: User, *, approve: Any = True, text: str = MERGED) -> None:
    """The model proposes to merge all rents, and its second answer says this of it."""
    members = await refs(kept, user, *RENTS)
    kept.script(
        answers(
            consolidation={"merges": [{"set": 1, "members": members, "text": text}]},
            approval={"verdicts": [{"merge": 1, "approve": approve, "reason": "…"}]},
        )
    )


# Consolidation.


async def test_memories_that_say_nearly_the_same_become_one_that_a_second_answer_approved(
    kept: Kept, user: User
) -> None:
    await add(kept, user, *RENTS, "The user plays the violin on Sundays.")
    violin, rent = await refs(kept, user, "The user plays the violin on Sundays.", RENTS[0])
    await kept.parts.memories.link(user.id, violin, rent, "other", reason="noise", actor="user")
    await live(kept, user, 7)
    await merging(kept, user)
    await do(kept, user, Consolidate())
    assert await kept.texts(user.id) == ["The user plays the violin on Sundays.", MERGED]
    links = await kept.rows(
        user.id,
        "select m.text, l.reason from memory_links l join memories m on m.id = l.to_id",
    )
    assert links == [{"text": MERGED, "reason": "noise"}]
    old = await kept.rows(
        user.id, "select superseded_by is not null as gone from memories where status = 'archived'"
    )
    assert [row["gone"] for row in old] == [True] * 3
    assert await kept.calls(user.id) == ["consolidation", "approval"]
    [asked] = kept.asked("consolidation")
    assert "violin" not in asked
    [event] = await kept.rows(
        user.id, "select distinct actor from memory_events where kind = 'merged'"
    )
    assert event["actor"] == "consolidation"


async def test_what_was_changed_while_a_model_thought_about_it_is_neither_merged_nor_archived(
    kept: Kept, user: User, place: Place
) -> None:
    changed = "The user pays 950 euros of rent since May."
    await add(kept, user, *RENTS)
    [rent] = await refs(kept, user, RENTS[0])
    kept.act[Step.ANSWERED] = lambda: edit_elsewhere(place, user, rent, changed)
    await live(kept, user, 7)
    await merging(kept, user)
    await do(kept, user, Consolidate())
    assert await kept.calls(user.id) == ["consolidation", "approval"]
    assert await kept.texts(user.id) == [changed, *RENTS[1:]]

    kite, allergy, _ = await fading(kept, user)
    kept.act[Step.ANSWERED] = lambda: edit_elsewhere(place, user, kite, "The kite is in the loft.")
    reviews = [{"id": ref, "action": "archive", "note": ""} for ref in (kite, allergy)]
    kept.script(answers(floor_review={"reviews": reviews}))
    await do(kept, user, ReviewFloor())
    rows = await kept.rows(
        user.id, "select status from memories where short_id = any($1) order by doc",
        [kite, allergy],
    )  # fmt: skip
    assert [row["status"] for row in rows] == ["active", "archived"]


@pytest.mark.parametrize(
    ("approve", "text"),
    [(False, MERGED), ("perhaps", MERGED), (True, "The user pays a rent of 950 euros.")],
    ids=["refused", "not plainly approved", "a number that nobody said"],
)
async def test_what_is_not_approved_is_not_merged_and_after_three_times_left_alone(
    kept: Kept, user: User, approve: Any, text: str
) -> None:
    await add(kept, user, *RENTS)
    await merging(kept, user, approve=approve, text=text)
    for n in range(5):
        await live(kept, user, 7)
        await do(kept, user, Consolidate())
        assert len(kept.asked("consolidation")) == min(n + 1, 3)
    assert await kept.texts(user.id) == list(RENTS)
    # One more that is like them makes it another question.
    await add(kept, user, "For the flat the user pays 900 euros each month.")
    await live(kept, user, 7)
    await do(kept, user, Consolidate())
    assert len(kept.asked("consolidation")) == 4


async def test_work_is_due_after_seven_use_days_or_more_and_then_done_once(
    kept: Kept, user: User
) -> None:
    await add(kept, user, *RENTS)
    await merging(kept, user, approve=False)
    counts = []
    for days in (6, 1, 0, 5, 30, 6, 1):
        await live(kept, user, days)
        await do(kept, user, Consolidate())
        await do(kept, user, Consolidate())
        counts.append(len(kept.asked("consolidation")))
    # At 7; a month later, which is once though it is four times seven; at the 49th.
    assert counts == [0, 1, 1, 1, 2, 2, 3]


@pytest.mark.parametrize("step", [Step.MERGED])
async def test_a_consolidation_that_is_cut_off_merges_nothing_twice(
    kept: Kept, user: User, step: Step
) -> None:
    await add(kept, user, *RENTS)
    await live(kept, user, 7)
    await merging(kept, user)
    kept.crashes = [step]
    await do(kept, user, Consolidate())
    assert await kept.texts(user.id) == [MERGED]
    assert await kept.rows(user.id, "select * from refused_merges") == []
    [job] = await kept.rows(user.id, "select last_run_use_day from memory_jobs")
    assert job["last_run_use_day"] == 7


async def test_an_answer_that_cannot_be_read_is_no_refusal_and_the_work_stays_due(
    kept: Kept, user: User
) -> None:
    await add(kept, user, *RENTS)
    await live(kept, user, 7)
    await merging(kept, user)
    good = kept.double.script.rules
    kept.script(answers(consolidation=("Hm.", "Hm.", "Hm.")))
    kept.double.script.rules = [*kept.double.script.rules[:-1], *good]
    await do(kept, user, Consolidate())
    assert await kept.texts(user.id) == [MERGED]


# Floor review.


async def fading(kept: Kept, user: User) -> list[str]:
    """Three memories that have been under the floor for a while; their short ids."""
    texts = (
        "The user once saw a red kite.",
        "The user is allergic to penicillin.",
        "Bob owes a pen.",
    )
    await add(kept, user, *texts)
    await live(kept, user, 100)
    async with kept.database.user(user.id) as tx:
        await tx.execute("update memory_scores set below_since_use_day = 96, importance = 0")
    return await refs(kept, user, *texts)


async def test_fading_memories_are_archived_kept_with_a_note_or_left(
    kept: Kept, user: User
) -> None:
    kite, allergy, pen = await fading(kept, user)
    kept.script(
        answers(
            floor_review={
                "reviews": [
                    {"id": kite, "action": "archive", "note": ""},
                    {"id": allergy, "action": "salvage", "note": "For every visit to a doctor."},
                    {"id": pen, "action": "leave", "note": ""},
                    {"id": "mem_00000000", "action": "archive", "note": ""},
                ]
            }
        )
    )
    await do(kept, user, ReviewFloor())
    rows = await kept.rows(
        user.id,
        "select m.short_id, m.status, s.below_since_use_day, s.reviewed_use_day, "
        "(select a.text from memory_annotations a where a.memory_id = m.id) as note "
        "from memories m join memory_scores s on s.memory_id = m.id order by m.doc",
    )
    assert [row["status"] for row in rows] == ["archived", "active", "active"]
    assert [row["note"] for row in rows] == [None, "For every visit to a doctor.", None]
    # Their days under the floor count anew.
    assert [(r["below_since_use_day"], r["reviewed_use_day"]) for r in rows[1:]] == [
        (None, 100)
    ] * 2
    assert len(await kept.rows(user.id, "select id from memories")) == 3
    assert await kept.calls(user.id) == ["floor_review"]


async def test_a_review_that_is_cut_off_writes_no_note_twice_and_marks_nothing_before_its_end(
    kept: Kept, user: User
) -> None:
    _, allergy, _ = await fading(kept, user)
    kept.script(
        answers(floor_review={"reviews": [{"id": allergy, "action": "salvage", "note": "Doctor."}]})
    )
    kept.crashes = [Step.REVIEWED]
    await do(kept, user, ReviewFloor())
    assert kept.crashes == []
    notes = await kept.rows(user.id, "select text from memory_annotations")
    assert notes == [{"text": "Doctor."}]
    marked = await kept.rows(
        user.id, "select count(*) as n from memory_scores where reviewed_use_day is not null"
    )
    # Those that the answer did not speak of are not reviewed.
    assert marked == [{"n": 1}]


async def test_a_review_whose_answer_cannot_be_read_marks_nothing(kept: Kept, user: User) -> None:
    await fading(kept, user)
    kept.script(answers(floor_review=("No idea.", "No idea.", {"reviews": []})))
    await do(kept, user, ReviewFloor())
    rows = await kept.rows(
        user.id, "select reviewed_use_day, below_since_use_day from memory_scores"
    )
    assert rows == [{"reviewed_use_day": None, "below_since_use_day": 96}] * 3
    assert await kept.calls(user.id) == ["floor_review"] * 5


# Names.


async def test_names_of_one_person_become_one_and_names_of_others_do_not(
    kept: Kept, user: User
) -> None:
    await add(kept, user, "Anna Berger has a red bicycle.", about=("Anna Berger", "PERSON"))
    await add(kept, user, "Ana Berger likes opera.", about=("Ana Berger", "PERSON"))
    await add(kept, user, "Kurt paints his fence.", about=("Kurt", "PERSON"))
    await add(kept, user, "Berger makes cheese.", about=("Berger", "ORG"))
    await live(kept, user, 7)
    kept.script(answers(entity_merge={"merges": [{"group": 1, "into": 1, "others": [2, 3, 9]}]}))
    await do(kept, user, MergeEntities())
    [asked] = kept.asked("entity_merge")
    assert "Kurt" not in asked
    assert 'type="ORG"' not in asked
    rows = await kept.rows(
        user.id,
        "select e.name, count(*) as n from memory_entities x join entities e on e.id = x.entity_id "
        "where e.merged_into is null group by 1 order by 1",
    )
    assert {row["name"]: row["n"] for row in rows} in (
        {"Anna Berger": 2, "Kurt": 1, "Berger": 1},
        {"Ana Berger": 2, "Kurt": 1, "Berger": 1},
    )
    [event] = await kept.rows(
        user.id, "select distinct actor from memory_events where actor = 'entities'"
    )
    assert event["actor"] == "entities"
    # Nothing new since: nothing to ask.
    await live(kept, user, 7)
    await do(kept, user, MergeEntities())
    assert len(kept.asked("entity_merge")) == 1


# The turn of a day.


async def test_a_use_day_begins_what_is_due_scores_anew_and_forgets(kept: Kept, user: User) -> None:
    await add(kept, user, *RENTS)
    await add(kept, user, "The user once saw a red kite.")
    await live(kept, user, 300)
    async with kept.database.user(user.id) as tx:
        await tx.execute(
            "update memory_scores set below_since_use_day = 290 where memory_id = "
            "(select id from memories where text like '%kite%')"
        )
    await merging(kept, user)
    kept.double.script.rules.append(answers(floor_review={"reviews": []}).rules[-1])
    await kept.tell(user.id, RollOverUseDay(ordinal=300), DAYS)
    await kept.settled()
    assert await kept.texts(user.id) == [MERGED]
    forgotten = await kept.rows(user.id, "select actor from memory_events where kind = 'archived'")
    assert forgotten == [{"actor": "decay"}]
    jobs = await kept.rows(user.id, "select job, last_run_use_day from memory_jobs order by job")
    assert [row["job"] for row in jobs] == [
        "consolidation", "entity_merge", "floor_review", "roll_over",
    ]  # fmt: skip
    assert {row["last_run_use_day"] for row in jobs} == {300}


async def test_the_first_message_of_a_day_turns_it_and_a_lost_turn_of_it_is_caught_up_with(
    kept: Kept, user: User
) -> None:
    await kept.core.ask(user.id, "Good morning.")
    await kept.until(Step.SCORED)
    await kept.settled()
    job = "select last_run_use_day as day from memory_jobs where job = 'roll_over'"
    assert await kept.rows(user.id, job) == [{"day": 1}]
    # A process that ended before the day could be turned.
    await live(kept, user, 3)
    await kept.look_around(user.id)
    await kept.settled()
    assert await kept.rows(user.id, job) == [{"day": 4}]


async def test_a_turn_is_answered_though_the_turn_of_the_day_fails_and_that_is_repeated(
    kept: Kept, user: User
) -> None:
    kept.crashes = [Step.SCORED] * 3
    assert isinstance(await kept.core.ask(user.id, "Good morning."), Completed)
    await kept.until(Step.SCORED)
    await kept.settled()
    assert kept.crashes == []
    rows = await kept.rows(user.id, "select last_run_use_day from memory_jobs")
    assert rows == [{"last_run_use_day": 1}]


async def test_dated_memories_are_scored_every_day_as_long_as_there_are_any(
    kept: Kept, user: User
) -> None:
    new = NewMemory(
        text="The user sees the dentist.", source="user",
        happens_at=SystemClock().now() + timedelta(days=3),
    )  # fmt: skip
    await kept.parts.memories.create(user.id, new, actor="user")
    await kept.tell(user.id, RefreshDated(), "dated")
    await kept.settled()
    timer = "select due_at > now() + interval '23 hours' as later from outbox where lane = 'dated'"
    assert await kept.rows(user.id, timer) == [{"later": True}]
    async with kept.database.user(user.id) as tx:
        await tx.execute("update memories set happens_at = happens_at - interval '90 days'")
        await tx.execute("update outbox set due_at = now() where lane = 'dated'")
    kept.core.system.look_for_durable()
    await kept.settled()
    assert await kept.rows(user.id, timer) == []


async def test_a_model_that_can_never_answer_is_asked_a_bounded_number_of_times_a_day(
    kept: Kept, user: User
) -> None:
    await add(kept, user, *RENTS)
    async with kept.database.user(user.id) as tx:
        await tx.execute("update memory_scores set integrated_at = null")
    await live(kept, user, 7)
    kept.script(answers(links="Hm?", consolidation="Hm?"))
    for day in (7, 7, 8):
        if day == 8:
            await live(kept, user, 1)
        await kept.tell(user.id, RollOverUseDay(ordinal=day), DAYS)
        await kept.settled()
        await kept.look_around(user.id)
        await kept.settled()
    # Three times a question and its repetition, for each of two pieces of work, on each turn of a
    # day; none for merely looking around.
    assert len(kept.double.bodies) == 3 * 2 * 2 * 3
    kept.script(answers(consolidation={"merges": []}))
    await live(kept, user, 1)
    await kept.tell(user.id, RollOverUseDay(ordinal=9), DAYS)
    await kept.settled()
    assert await kept.rows(user.id, "select * from memory_scores where integrated_at is null") == []


async def test_what_was_stored_without_a_vector_gets_one_when_the_keeper_comes_to_life(
    database: Database, user: User, encoders: OneEncoder
) -> None:
    async with keeping(database, OneEncoder(None)) as kept:
        await add(kept, user, *RENTS)
        assert await kept.rows(user.id, "select doc from vectors_384") == []
    async with keeping(database, encoders) as kept:
        await kept.look_around(user.id)
        await kept.settled()
        assert len(await kept.rows(user.id, "select doc from vectors_384")) == 3


async def test_what_a_new_day_brings_waits_until_its_first_words_are_long_answered(
    database: Database, user: User, encoders: OneEncoder
) -> None:
    clock = JumpingClock()
    async with keeping(database, encoders, clock=clock, rest=timedelta(minutes=10)) as kept:

        async def scored() -> list[dict[str, Any]]:
            return await kept.rows(
                user.id, "select last_run_use_day from memory_jobs where job = 'roll_over'"
            )

        assert isinstance(await kept.core.ask(user.id, "Good morning."), Completed)
        await kept.core.system.workers.quiet()
        assert await scored() == []
        waiting = "select kind, due_at from outbox where lane = 'days'"
        [row] = await kept.rows(user.id, waiting)
        assert row["due_at"] > clock.now() + timedelta(minutes=9)
        clock.jump(minutes=11)
        kept.core.system.look_for_durable()
        with anyio.fail_after(20):
            while await kept.rows(user.id, waiting):
                await anyio.lowlevel.checkpoint()
        assert await scored() == [{"last_run_use_day": 1}]
