"""What a turn recalls: without a tool, with what the Subcortex says or without, of all sources."""

from __future__ import annotations

from uuid import UUID

import anyio
import asyncpg
import pytest
from structlog.testing import capture_logs

from mira.actors.recall import Recall
from mira.actors.recalled import Recalled, Wanted
from mira.clock import SystemClock
from mira.errors import MiraError
from mira.ids import SystemIds
from mira.memory.pool import CpuPool
from mira.memory.recogniser import DEFAULT_MODEL, Recogniser
from mira.memory.surfacing import DEFAULT, PASSAGES, RETAINED
from mira.messages.subcortex import Complexity, Considered, Fallback, InContext
from mira.store.database import Database
from mira.store.memory_search import SHARED
from mira.store.users import User
from tests.conftest import Place
from tests.support.memory import Remembering
from tests.support.recall import PATIENCE, Recalling, texts
from tests.support.subcortex import answer, thinking

pytestmark = pytest.mark.anyio

DAHON = "The user's second choice is the Dahon folding bike, which weighs 12 kg"
BROMPTON = "The user rode a Brompton in a shop and liked it"
#: Facts of a life that have nothing to do with bikes.
OTHERS = (
    "The user's tomatoes grow on the balcony",
    "The user sings in a choir on Tuesdays",
    "The user's landlord is called Brunner",
    "The user has read all novels of Ursula Le Guin",
    "The user's car is at the garage in Wels",
    "The user drinks oat milk in coffee",
    "The user broke an ankle while skiing in 2019",
    "The user's passport is valid until 2031",
    "The user plays chess on Sundays",
    "The user wants to repaint the kitchen in green",
)


@pytest.fixture
async def recogniser(pool: CpuPool) -> Recogniser:
    """The recogniser of names that ships, ready."""
    made = Recogniser(DEFAULT_MODEL, pool)
    await made.warm()
    return made


@pytest.fixture
def mind(here: Remembering) -> Recalling:
    return Recalling(here)


async def remember(mind: Recalling, user: UUID, *facts: str) -> dict[str, UUID]:
    return {fact: (await mind.here.add(user, fact)).memory.id for fact in facts}


def phrases(*said: str, keep: tuple[UUID, ...] = (), entities: tuple[str, ...] = ()) -> Considered:
    return Considered(phrases=said, retain=keep, entities=entities)


def found_by(recalled: Recalled, text: str) -> str:
    return next(one.found_by for one in recalled.memories if one.text == text)


# By what is searched.


async def test_a_memory_comes_up_by_the_message_alone_and_without_a_tool(
    mind: Recalling, user: User
) -> None:
    await remember(mind, user.id, DAHON, *OTHERS)
    recalled = await mind.turn(user.id, "Do you remember which folding bike I wanted?")
    assert recalled.memories[0].text == DAHON
    assert recalled.memories[0].short_id.startswith("mem_")
    assert recalled.speculative
    assert len(recalled.memories) <= DEFAULT
    assert recalled.failed == {}
    assert {"all", "retained", "speculative:memories", "speculative:history"} <= set(
        recalled.timings
    )


async def test_a_fragment_finds_what_it_refers_to_once_its_pronoun_is_resolved(
    mind: Recalling, user: User, database: Database
) -> None:
    """The whole way: the exchanges go to the model, its phrases to the search."""
    await remember(mind, user.id, *OTHERS, DAHON)
    turn_id = await mind.here.turn(user.id)
    words = "what about the other one?"
    by_words_alone = await mind.turn(user.id, words)
    assert by_words_alone.memories[0].text != DAHON
    resolved = answer("the Dahon folding bike", "folding bikes compared", complexity="complex")
    async with thinking(database, resolved) as subcortex:

        async def consider(offered: tuple[InContext, ...]) -> Considered:
            return await subcortex.consider(
                user.id, turn_id, words, memories=offered,
                said=(("Is the Brompton or the Dahon lighter?", "The Brompton, by a little."),),
            )  # fmt: skip

        wanted = Wanted(user_id=user.id, turn_id=turn_id, words=words)
        recalled = await mind.recall.for_turn(wanted, consider)
        asked = subcortex.model.requests[0].messages[0].blocks[0].text  # type: ignore[union-attr]
    assert "Is the Brompton or the Dahon lighter?" in asked
    assert recalled.memories[0].text == DAHON
    assert not recalled.speculative


async def test_a_name_in_the_message_reaches_what_is_linked_to_the_memory_about_it(
    mind: Recalling, user: User
) -> None:
    """Neither memory holds the name: one is about it, the other is linked to that one."""
    about = (await mind.here.add(
        user.id, "The user's sister cannot eat hazelnuts", about=[("Mara Koller", "PERSON")]
    )).memory  # fmt: skip
    linked = (await mind.here.add(user.id, "An adrenaline pen lies in the blue drawer")).memory
    await mind.here.memories.link(
        user.id, about.id, linked.id, "contextualizes", actor="user", reason="the allergy"
    )
    await remember(mind, user.id, *OTHERS)
    recalled = await mind.turn(
        user.id, "Mara Koller is coming over!",
        phrases("a visit at the weekend", entities=("Mara Koller",)),
    )  # fmt: skip
    [shown] = [one for one in recalled.memories if one.id == about.id]
    everything = {one.id for one in recalled.memories}
    everything |= {beside.id for one in recalled.memories for beside in one.linked}
    assert linked.id in everything
    assert [one.how for one in shown.linked if one.id == linked.id] in ([], ["contextualizes"])


async def test_the_last_replies_bring_up_a_memory_that_nobody_has_asked_for(
    mind: Recalling, user: User
) -> None:
    await remember(mind, user.id, DAHON, *OTHERS)
    said = await mind.told(
        user.id, "What should I look at?",
        "Look at the Dahon folding bike: it weighs about 12 kg and is your second choice.",
    )  # fmt: skip
    recalled = await mind.turn(
        user.id, "good morning", phrases("a greeting in the morning"), replies=(said[1],)
    )
    assert found_by(recalled, DAHON) == "reply"


async def test_a_reply_that_is_not_taken_in_yet_is_passed_over(mind: Recalling, user: User) -> None:
    said = await mind.told(
        user.id, "Which one?", "The Dahon folding bike, which weighs 12 kg.", indexed=False
    )
    await remember(mind, user.id, DAHON)
    assert await mind.searches.of_replies(_wanted(user.id, replies=(said[1],))) == ()
    await mind.index(user.id)
    [found] = await mind.searches.of_replies(_wanted(user.id, replies=(said[1],)))
    assert found.memory.text == DAHON


async def test_a_reply_brings_up_only_what_is_much_like_it_and_at_most_three(
    mind: Recalling, user: User
) -> None:
    bikes = [f"The user's folding bike number {n} is a Dahon" for n in range(1, 7)]
    known = await remember(mind, user.id, *bikes, *OTHERS)
    said = await mind.told(user.id, "Well?", "The user's folding bike is a Dahon.")
    found = await mind.searches.of_replies(_wanted(user.id, replies=(said[1],)))
    assert len(found) == 3
    assert {one.memory.text for one in found} <= set(bikes)
    # Whether those of the last turn stay has been decided already.
    kept = tuple(known[bike] for bike in bikes)
    assert await mind.searches.of_replies(_wanted(user.id, replies=(said[1],), surfaced=kept)) == ()


async def test_what_was_said_comes_up_beside_memories_but_not_what_the_prompt_holds(
    mind: Recalling, user: User
) -> None:
    await remember(mind, user.id, *OTHERS)
    said = await mind.told(
        user.id,
        "The plumber said that the boiler needs a new valve.", "A valve costs about 80 euros.",
        "The plumber comes back on the 14th with the valve.", "I will remember the 14th.",
    )  # fmt: skip
    question = phrases("the plumber and the valve of the boiler")
    recalled = await mind.turn(user.id, "When does he come?", question)
    shown = [one.message_id for one in recalled.passages]
    assert said[2] in shown
    assert len(shown) <= PASSAGES
    first = recalled.passages[0]
    assert first.text == await mind.words(user.id, first.message_id)
    again = await mind.turn(user.id, "When does he come?", question, held=frozenset(said))
    assert again.passages == ()


async def test_of_a_long_message_the_part_that_answers_is_shown(
    mind: Recalling, user: User
) -> None:
    filler = "We talked about the weather and about the garden for a while. " * 30
    found = "The plumber brings the valve for the boiler on the 14th."
    await mind.told(user.id, f"{filler}{found} {filler}", "I see.")
    recalled = await mind.turn(user.id, "When?", phrases("the plumber and the valve of the boiler"))
    [shown] = [one for one in recalled.passages if found in one.text]
    assert len(shown.text) <= 600


async def test_names_are_found_in_the_message_though_the_subcortex_gives_none(
    mind: Recalling, user: User, recogniser: Recogniser
) -> None:
    about = (await mind.here.add(
        user.id, "The neighbour upstairs waters the plants", about=[("Angela Novak", "PERSON")]
    )).memory  # fmt: skip
    await remember(mind, user.id, *OTHERS)
    words = "Angela Novak called me yesterday from London."

    async def consider(_offered: tuple[InContext, ...]) -> Considered:
        # Texts are read one after another: once this one has been, the turn's own has been, too.
        await anyio.wait_all_tasks_blocked()
        await recogniser.entities(words, live=True)
        return phrases("a call of yesterday")

    turn_id = await mind.here.turn(user.id)
    wanted = Wanted(user_id=user.id, turn_id=turn_id, words=words)
    recall = Recall(mind.searches, recogniser, SystemClock(), SystemIds(), longest=PATIENCE)
    recalled = await recall.for_turn(wanted, consider)
    assert about.id in recalled.surfaced
    query = (await mind.traces(user.id, turn_id))["recall"].query
    assert query is not None
    assert "Angela Novak" in query["entities"]


# What stays.


async def test_memories_that_are_kept_stay_and_the_others_drop(mind: Recalling, user: User) -> None:
    known = await remember(mind, user.id, DAHON, BROMPTON, *OTHERS)
    before = (known[DAHON], known[BROMPTON], known[OTHERS[0]])
    recalled = await mind.turn(
        user.id, "What do we cook?", phrases("cooking dinner", keep=(known[DAHON],)),
        surfaced=before,
    )  # fmt: skip
    assert recalled.memories[0].text == DAHON
    assert found_by(recalled, DAHON) == "retained"
    retained = [one for one in recalled.memories if one.found_by == "retained"]
    assert [one.text for one in retained] == [DAHON]
    assert known[DAHON] in recalled.surfaced


async def test_at_most_six_stay_and_fresh_ones_fill_up_to_eight(
    mind: Recalling, user: User
) -> None:
    known = await remember(mind, user.id, *OTHERS, DAHON, BROMPTON)
    before = tuple(known[text] for text in OTHERS)
    recalled = await mind.turn(
        user.id, "Which bike?", phrases("the Dahon folding bike", keep=before), surfaced=before
    )
    kept = [one for one in recalled.memories if one.found_by == "retained"]
    fresh = [one.text for one in recalled.memories if one.found_by == "search"]
    assert len(kept) == RETAINED
    assert len(recalled.memories) == DEFAULT
    assert DAHON in fresh
    # The next turn may keep any of them.
    assert recalled.surfaced == tuple(one.id for one in recalled.memories)


@pytest.mark.parametrize("fallback", list(Fallback))
async def test_without_the_subcortex_the_message_is_searched_and_the_most_important_stay(
    mind: Recalling, user: User, fallback: Fallback
) -> None:
    known = await remember(mind, user.id, DAHON, *OTHERS)
    before = tuple(known[text] for text in OTHERS[:8])
    async with mind.here.database.user(user.id) as tx:
        for place, one in enumerate(before):
            await tx.execute(
                "update memory_scores set importance = $2 where memory_id = $1", one, place / 10
            )
    recalled = await mind.turn(
        user.id, "How heavy is the Dahon folding bike?", Considered(fallback=fallback),
        surfaced=before,
    )  # fmt: skip
    retained = [one.id for one in recalled.memories if one.found_by == "retained"]
    assert retained == list(before[:1:-1])
    assert DAHON in texts(recalled)
    assert recalled.speculative
    assert recalled.considered is not None
    assert recalled.considered.complexity is Complexity.COMPLEX


async def test_what_was_archived_or_belongs_to_somebody_else_does_not_stay(
    mind: Recalling, user: User, other: User
) -> None:
    known = await remember(mind, user.id, DAHON, BROMPTON)
    foreign = (await mind.here.add(other.id, "Somebody else's secret is safe")).memory.id
    await mind.here.memories.archive(user.id, known[BROMPTON], actor="user")
    before = (known[BROMPTON], foreign, known[DAHON])
    recalled = await mind.turn(user.id, "hm", surfaced=before)
    assert texts(recalled) == [DAHON]


async def test_a_memory_that_everybody_shares_can_stay(
    mind: Recalling, user: User, database: Database
) -> None:
    await remember(mind, user.id, DAHON)
    shared = (await mind.here.add(SHARED, "The office is closed on Fridays in August")).memory.id
    try:
        recalled = await mind.turn(
            user.id, "hm", phrases("bikes", keep=(shared,)), surfaced=(shared,)
        )
    finally:
        await mind.here.memories.remove_shared(shared)
    assert recalled.memories[0].id == shared


async def test_a_superseded_memory_that_stays_brings_what_stands_in_its_place(
    mind: Recalling, user: User
) -> None:
    known = await remember(mind, user.id, "The user's sister lives in Linz", *OTHERS)
    newer = (await mind.here.add(user.id, "Since May the sister's home is an old mill")).memory
    old = known["The user's sister lives in Linz"]
    await mind.here.memories.supersede(user.id, old, newer.id, actor="user")
    recalled = await mind.turn(user.id, "xyz", phrases("tomatoes", keep=(old,)), surfaced=(old,))
    kept = recalled.memories[0]
    assert kept.superseded
    assert newer.id in {one.id for one in kept.linked} | set(recalled.surfaced)


# What happens at the same time, and what goes wrong.


async def test_a_quick_subcortex_saves_the_search_with_the_message(
    mind: Recalling, user: User
) -> None:
    await remember(mind, user.id, DAHON)
    recall = Recall(
        mind.searches, None, SystemClock(), SystemIds(), longest=PATIENCE, head_start=PATIENCE
    )
    turn_id = await mind.here.turn(user.id)

    async def consider(_offered: tuple[InContext, ...]) -> Considered:
        return phrases("the Dahon folding bike")

    wanted = Wanted(user_id=user.id, turn_id=turn_id, words="and that one?")
    recalled = await recall.for_turn(wanted, consider)
    assert texts(recalled) == [DAHON]
    assert not any(name.startswith("speculative") for name in recalled.timings)
    assert "speculative" not in await mind.traces(user.id, turn_id)


async def test_a_subcortex_that_fails_at_once_leaves_no_head_start_to_wait_for(
    mind: Recalling, user: User
) -> None:
    await remember(mind, user.id, DAHON)
    recall = Recall(
        mind.searches, None, SystemClock(), SystemIds(), longest=PATIENCE, head_start=10 * PATIENCE
    )
    turn_id = await mind.here.turn(user.id)

    async def consider(_offered: tuple[InContext, ...]) -> Considered:
        return Considered(fallback=Fallback.FAILED)

    wanted = Wanted(user_id=user.id, turn_id=turn_id, words="the folding bike")
    with anyio.fail_after(PATIENCE):
        recalled = await recall.for_turn(wanted, consider)
    assert texts(recalled) == [DAHON]
    assert recalled.speculative


async def test_the_message_is_searched_while_the_subcortex_thinks(
    mind: Recalling, user: User
) -> None:
    await remember(mind, user.id, DAHON)
    turn_id = await mind.here.turn(user.id)

    async def consider(_offered: tuple[InContext, ...]) -> Considered:
        with anyio.fail_after(30):
            while "speculative" not in await mind.traces(user.id, turn_id):
                await anyio.lowlevel.checkpoint()
        return Considered(fallback=Fallback.LATE)

    wanted = Wanted(user_id=user.id, turn_id=turn_id, words="folding bike")
    assert texts(await mind.recall.for_turn(wanted, consider)) == [DAHON]


async def test_memories_that_may_be_kept_are_offered_with_their_ids(
    mind: Recalling, user: User
) -> None:
    known = await remember(mind, user.id, DAHON, BROMPTON)
    offered: list[InContext] = []

    async def consider(given: tuple[InContext, ...]) -> Considered:
        offered.extend(given)
        return Considered(fallback=Fallback.FAILED)

    wanted = Wanted(
        user_id=user.id, turn_id=await mind.here.turn(user.id), words="hm",
        surfaced=(known[BROMPTON], known[DAHON]),
    )  # fmt: skip
    await mind.recall.for_turn(wanted, consider)
    assert [one.text for one in offered] == [BROMPTON, DAHON]
    assert all(one.short_id.startswith("mem_") for one in offered)


async def test_a_search_that_fails_is_left_out_and_named(
    mind: Recalling, user: User, place: Place
) -> None:
    await remember(mind, user.id, DAHON)
    said = await mind.told(user.id, "The Dahon was 12 kg", "Noted, the Dahon folding bike.")
    owner = await asyncpg.connect(**place.owner)
    try:
        await owner.execute("revoke select on passages from mira_app")
        with capture_logs() as logs:
            recalled = await mind.turn(user.id, "the Dahon folding bike", replies=(said[1],))
    finally:
        await owner.execute("grant select on passages to mira_app")
        await owner.close()
    assert {line["part"] for line in logs if line["log_level"] == "error"} == {"recall"}
    assert texts(recalled) == [DAHON]
    assert recalled.passages == ()
    assert dict(recalled.failed) == {
        "speculative:history": MiraError.code, "replies": MiraError.code,
    }  # fmt: skip


async def test_a_message_of_nothing_recalls_nothing_and_fails_nothing(
    mind: Recalling, user: User
) -> None:
    await remember(mind, user.id, DAHON)
    recalled = await mind.turn(user.id, " \n ")
    assert (recalled.memories, recalled.passages, dict(recalled.failed)) == ((), (), {})


async def test_a_turn_that_is_cancelled_is_left_at_once(mind: Recalling, user: User) -> None:
    await remember(mind, user.id, DAHON)
    wanted = _wanted(user.id, turn_id=await mind.here.turn(user.id))

    async def never(_offered: tuple[InContext, ...]) -> Considered:
        scope.cancel()
        await anyio.sleep_forever()
        raise AssertionError

    with anyio.fail_after(30), anyio.CancelScope() as scope:
        await mind.recall.for_turn(wanted, never)
    assert scope.cancelled_caught


# The account of it.


async def test_the_trace_of_a_turn_tells_what_was_searched_shown_and_kept(
    mind: Recalling, user: User
) -> None:
    known = await remember(mind, user.id, DAHON, *OTHERS)
    said = await mind.told(user.id, "The Dahon was light", "Yes, the Dahon is a light bike.")
    turn_id = await mind.here.turn(user.id)
    kept = known[OTHERS[1]]
    recalled = await mind.turn(
        user.id, "and the other one?", phrases("the Dahon folding bike", keep=(kept,)),
        surfaced=(kept,), turn_id=turn_id,
    )  # fmt: skip
    traces = await mind.traces(user.id, turn_id)
    assert known[DAHON] in traces["recall"].surfaced
    assert kept in traces["retained"].surfaced
    assert traces["history"].query is not None
    assert traces["history"].query["phrases"] == ["the Dahon folding bike"]
    assert set(traces["history"].surfaced) == {one.message_id for one in recalled.passages}
    assert set(traces["history"].surfaced) <= set(said)
    assert "speculative" not in traces or not traces["speculative"].surfaced
    assert set(recalled.traces) == {
        trace.id for purpose, trace in traces.items() if purpose != "speculative"
    }


def _wanted(
    user_id: UUID, *, replies: tuple[UUID, ...] = (), surfaced: tuple[UUID, ...] = (),
    turn_id: UUID | None = None,
) -> Wanted:  # fmt: skip
    return Wanted(
        user_id=user_id,
        turn_id=turn_id or UUID(int=1),
        words="the Dahon",
        replies=replies,
        surfaced=surfaced,
    )
