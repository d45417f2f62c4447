"""New memories looked at once: linked, merged into older ones, or left; at one call for several."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import anyio
import pytest

from mira.actors.memory_keeper_parts import LINKS, Step
from mira.memory.model import EntityName, NewMemory
from mira.messages.memory import LinkMemories
from mira.store.users import User
from tests.support.keeper import Kept, answers, fact, memories_of
from tests.support.story import tell_story

pytestmark = pytest.mark.anyio

COFFEE = "The user likes strong black coffee."
MORNING = "The user drinks strong black coffee every morning."
RENT, MONTHLY = "The user pays 900 euros of rent.", "The user's rent is 900 euros a month."


async def add(kept: Kept, user: User, *texts: str, about: str = "") -> None:
    for text in texts:
        entities = (EntityName(about, "PERSON"),) if about else ()
        new = NewMemory(text=text, source="user", entities=entities)
        await kept.parts.memories.create(user.id, new, actor="user")


async def looked_at(kept: Kept, user: User) -> None:
    """What is there now counts as looked at."""
    async with kept.database.user(user.id) as tx:
        await tx.execute("update memory_scores set integrated_at = now()")


async def look(kept: Kept, user: User) -> None:
    await kept.tell(user.id, LinkMemories(), LINKS)
    await kept.settled()


async def not_looked_at(kept: Kept, user: User) -> int:
    rows = await kept.rows(
        user.id,
        "select count(*) as n from memory_scores s join memories m on m.id = s.memory_id "
        "where integrated_at is null and status = 'active'",
    )
    found: int = rows[0]["n"]
    return found


async def links(kept: Kept, user: User) -> list[tuple[str, str, str, str]]:
    rows = await kept.rows(
        user.id,
        "select a.text as a, b.text as b, l.type, l.reason from memory_links l "
        "join memories a on a.id = l.from_id join memories b on b.id = l.to_id order by 1, 2, 3",
    )
    return [(row["a"], row["type"], row["b"], row["reason"]) for row in rows]


def link(ref: str, kind: str, other: str, **fields: Any) -> dict[str, Any]:
    return {
        "from": ref,
        "to": other,
        "type": kind,
        "reason": "why not",
        "confidence": 0.8,
        **fields,
    }


async def test_a_new_memory_is_linked_with_what_is_like_it_and_looked_at_once(
    kept: Kept, user: User
) -> None:
    await add(kept, user, COFFEE, "The user plays the violin on Sundays.")
    await looked_at(kept, user)
    await add(kept, user, MORNING)
    refs = await kept.refs(user.id)
    kept.script(answers(links={"links": [link(refs[MORNING], "refines", refs[COFFEE])]}))
    await look(kept, user)
    assert await links(kept, user) == [(MORNING, "refines", COFFEE, "why not")]
    [asked] = kept.asked("links")
    assert COFFEE in asked
    assert "violin" not in asked
    assert await not_looked_at(kept, user) == 0
    await look(kept, user)
    assert await kept.calls(user.id) == ["links"]
    [event] = await kept.rows(user.id, "select actor from memory_events where kind = 'linked'")
    assert event["actor"] == "linking"


async def test_memories_about_one_person_are_candidates_though_they_say_different_things(
    kept: Kept, user: User
) -> None:
    sister, nurse = "Anna is the user's sister.", "Anna, the user's sister, is a nurse in Linz."
    await add(kept, user, sister, nurse, "Anna Karenina is long.", about="Anna")
    await add(kept, user, "The user's car needs new tyres.")
    await look(kept, user)
    [asked] = kept.asked("links")
    assert asked.count(nurse) == 2  # as new, and as a candidate of her sister
    assert "tyres" not in asked


async def test_many_new_memories_cost_one_call_for_eight_and_those_like_nothing_none(
    kept: Kept, user: User
) -> None:
    await add(
        kept, user, *(f"The user owes friend number {n} exactly {n * 7} euros." for n in range(12))
    )
    await look(kept, user)
    assert len(kept.asked("links")) == 2
    await add(kept, user, "Grandmother's piano is out of tune.")
    await look(kept, user)
    assert len(kept.asked("links")) == 2
    assert await not_looked_at(kept, user) == 0


async def test_what_a_segment_of_several_chunks_tells_is_looked_at_together_in_one_call(
    kept: Kept, user: User
) -> None:
    await add(kept, user, COFFEE)
    await looked_at(kept, user)
    told = (MORNING, "The user drinks strong black coffee after lunch.", "The user drinks no tea.")
    kept.script(answers(extraction=tuple(memories_of(fact(text, 1)) for text in told)))
    words = [f"{tree} " * 1000 for tree in ("oaks", "elms", "firs", "yews", "figs")]
    segment = await tell_story(kept.database, user.id, *[w for one in words for w in (one, "Ok.")])
    await kept.extract(user.id, segment)
    assert await kept.calls(user.id) == ["extraction"] * 3 + ["links"]
    assert all(text in kept.asked("links")[0] for text in told[:2])
    assert await not_looked_at(kept, user) == 0


async def test_what_a_new_memory_makes_untrue_is_closed(kept: Kept, user: User) -> None:
    await add(kept, user, RENT)
    await looked_at(kept, user)
    await add(kept, user, "The user pays 950 euros of rent.")
    refs = await kept.refs(user.id)
    new = refs["The user pays 950 euros of rent."]
    kept.script(
        answers(
            links={
                "links": [
                    link(new, "supersedes", refs[RENT]),
                    # What is older makes nothing newer untrue, and strangers are not reached.
                    link(refs[RENT], "supersedes", new),
                    link(new, "conflicts", "mem_00000000"),
                ]
            }
        )
    )
    await look(kept, user)
    rows = await kept.rows(
        user.id, "select text, superseded_by is not null as old from memories order by doc"
    )
    assert [row["old"] for row in rows] == [True, False]


@pytest.mark.parametrize("said_by_the_model", ["first over second", "second over first"])
async def test_what_was_said_last_stands_though_it_was_learned_first(
    kept: Kept, user: User, said_by_the_model: str
) -> None:
    monday, tuesday = datetime(2026, 3, 2, 9, tzinfo=UTC), datetime(2026, 3, 3, 9, tzinfo=UTC)
    raised = "The user pays 950 euros of rent."
    for text, said_at in ((raised, tuesday), (RENT, monday)):
        new = NewMemory(text=text, source="extraction", valid_from=said_at)
        await kept.parts.memories.create(user.id, new, actor="extraction")
        if text == raised:
            await looked_at(kept, user)
    refs = await kept.refs(user.id)
    pair = (refs[RENT], refs[raised])
    start, end = pair if said_by_the_model == "first over second" else pair[::-1]
    kept.script(answers(links={"links": [link(start, "supersedes", end)]}))
    await look(kept, user)
    old = await kept.parts.memories.get(user.id, refs[RENT])
    assert str(old.superseded_by) == str((await kept.parts.memories.get(user.id, refs[raised])).id)
    # Each was true when it was said, and the older one until the newer one was.
    assert (old.valid_from, old.valid_to) == (monday, tuesday)
    [asked] = kept.asked("links")
    assert 'since="2026-03-02 09:00"' in asked
    assert 'since="2026-03-03 09:00"' in asked


async def test_two_that_say_the_same_become_one_in_the_words_of_one_of_them(
    kept: Kept, user: User
) -> None:
    await add(kept, user, RENT)
    await looked_at(kept, user)
    await add(kept, user, MONTHLY)
    refs = await kept.refs(user.id)
    merge = {"new": refs[MONTHLY], "into": refs[RENT], "keep": refs[MONTHLY], "text": "A castle!"}
    kept.script(answers(links={"links": [], "merges": [merge]}))
    await look(kept, user)
    assert await kept.texts(user.id) == [MONTHLY]
    # What came of it is not looked at again.
    assert await not_looked_at(kept, user) == 0
    assert await kept.calls(user.id) == ["links"]


@pytest.mark.parametrize("step", [Step.LINKED, Step.MERGED])
async def test_a_look_that_is_cut_off_is_repeated_and_changes_nothing_twice(
    kept: Kept, user: User, step: Step
) -> None:
    await add(kept, user, RENT, COFFEE)
    await looked_at(kept, user)
    await add(kept, user, MONTHLY, MORNING)
    refs = await kept.refs(user.id)
    kept.script(
        answers(
            links={
                "links": [link(refs[MORNING], "refines", refs[COFFEE])],
                "merges": [{"new": refs[MONTHLY], "into": refs[RENT], "keep": refs[RENT]}],
            }
        )
    )
    kept.crashes = [step]
    await look(kept, user)
    assert sorted(await kept.texts(user.id)) == sorted([RENT, COFFEE, MORNING])
    assert len(await links(kept, user)) == 1
    assert await not_looked_at(kept, user) == 0
    kinds = await kept.rows(user.id, "select kind from memory_events where kind = 'linked'")
    assert len(kinds) == 1


async def test_an_answer_that_cannot_be_read_leaves_them_to_be_looked_at_again(
    kept: Kept, user: User
) -> None:
    await add(kept, user, COFFEE, MORNING)
    refs = await kept.refs(user.id)
    good = {"links": [link(refs[MORNING], "refines", refs[COFFEE])]}
    kept.script(answers(links=("What?", "What?", good)))
    await look(kept, user)
    assert len(await links(kept, user)) == 1
    # Twice two calls that led to nothing, and one that did: all are in the books.
    assert await kept.calls(user.id) == ["links"] * 5


async def test_what_a_tool_or_the_user_stored_is_found_after_the_next_turn(
    kept: Kept, user: User
) -> None:
    await add(kept, user, COFFEE, MORNING)
    with anyio.fail_after(20):
        await kept.core.ask(user.id, "Good morning.")
    await kept.until(Step.LINKED)
    await kept.settled()
    assert await not_looked_at(kept, user) == 0


async def test_what_one_user_has_is_no_candidate_for_another(
    kept: Kept, user: User, other: User
) -> None:
    await add(kept, user, COFFEE)
    await add(kept, other, MORNING)
    await look(kept, user)
    await look(kept, other)
    assert kept.double.bodies == []
    rows: list[UUID] = [
        row["id"]
        for who in (user, other)
        for row in await kept.rows(who.id, "select id from memories")
    ]
    assert len(rows) == 2
