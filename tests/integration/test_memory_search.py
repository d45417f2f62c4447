"""Search over memories: what is found, in which order, with what beside it, and its trace."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mira.errors import NotFound, ValidationFailed
from mira.memory.memories import Memories
from mira.memory.model import NewMemory
from mira.memory.query import RecallQuery
from mira.memory.ranking import Blend
from mira.store import signatures, spaces, traces, vectors
from mira.store.memory_search import SHARED
from mira.store.spaces import Source
from mira.store.users import User
from tests.integration.memory_fixtures import here
from tests.support.memory import OneEncoder, Remembering, texts_of

__all__ = ["here"]
pytestmark = pytest.mark.anyio
DAY = timedelta(days=1)

FACTS = (
    "Ada lives in Vienna with her sister", "Ada is allergic to peanuts", "Rex is a brown dog",
    "The car is an old green Volvo", "Grace teaches mathematics at school",
    "The rent of the flat is 900 euros", "Ada plays the cello every Sunday",
    "The project Enigma ends in June",
)  # fmt: skip


async def fill(here: Remembering, user: User) -> None:
    for text in FACTS:
        await here.add(user.id, text)


async def test_memories_are_found_by_meaning_and_by_words(here: Remembering, user: User) -> None:
    await fill(here, user)
    for phrase, wanted in (
        ("which musical instrument does she play", "Ada plays the cello every Sunday"),
        ("what food must she avoid", "Ada is allergic to peanuts"),
        ("Volvo", "The car is an old green Volvo"),
        ("how much does the apartment cost each month", "The rent of the flat is 900 euros"),
        ("enigma", "The project Enigma ends in June"),
    ):
        assert (await here.texts(user.id, phrase))[0] == wanted, phrase


async def test_several_phrases_find_what_answers_any_of_them(here: Remembering, user: User) -> None:
    await fill(here, user)
    found = await here.texts(user.id, "Volvo", "mathematics", "zzz qqq", limit=2)
    assert set(found) == {FACTS[3], FACTS[4]}


async def test_a_question_of_many_common_words_is_no_and_of_them(
    here: Remembering, user: User
) -> None:
    await fill(here, user)
    hits = await here.find(user.id, "tell me again whatever you know of that Volvo xylophone")
    assert hits[0].memory.text == FACTS[3]
    assert hits[0].lanes["lexical"][0] == 1


async def test_nothing_asked_is_refused_and_nothing_there_is_nothing_found(
    here: Remembering, user: User
) -> None:
    assert await here.texts(user.id, "anything") == []
    for phrases in ((), ("",), ("  \0 ",)):
        with pytest.raises(ValidationFailed):
            await here.texts(user.id, *phrases)
    await here.add(user.id, "阿达住在维也纳并且有一只狗")
    assert await here.texts(user.id, "狗", intent="exact") == ["阿达住在维也纳并且有一只狗"]
    for odd in ("?!", "\ud800x", "a" * 100_000, "👩‍👩‍👧‍👦", "' or 1=1 --", "%_\\"):
        await here.texts(user.id, odd)


async def test_the_limit_is_kept_and_what_is_excluded_does_not_count_towards_it(
    here: Remembering, user: User
) -> None:
    await fill(here, user)
    first = await here.find(user.id, "Ada", limit=2)
    rest = await here.find(
        user.id, "Ada", limit=2, exclude=frozenset(hit.memory.id for hit in first)
    )
    assert len(first) == len(rest) == 2
    assert not {hit.memory.id for hit in first} & {hit.memory.id for hit in rest}


async def test_a_name_finds_what_is_about_it_though_no_word_says_so(
    here: Remembering, user: User
) -> None:
    await fill(here, user)
    about = "It has to be back by nine at the latest"
    await here.add(user.id, about, about=[("Émile Durand", "PERSON")])
    for name in ("Émile Durand", "emile durand", "Emile Durant"):
        hits = await here.find(user.id, "tell me of him", entities=(name,), intent="explore")
        assert [h.memory.text for h in hits if "entity" in h.lanes] == [about]
    hits = await here.find(user.id, "what about emile durand?")
    assert about in [hit.memory.text for hit in hits if "entity" in hit.lanes]
    hits = await here.find(user.id, "tell me of him", entities=("Nobody Known",))
    assert all("entity" not in hit.lanes for hit in hits)


async def test_a_rare_name_weighs_more_than_one_that_occurs_everywhere(
    here: Remembering, user: User
) -> None:
    for n, text in enumerate(FACTS):
        names = [("Ada", "PERSON")] + ([("Enigma", "PRODUCT")] if n == 0 else [])
        await here.add(user.id, text, about=names)
    hits = await here.find(user.id, "xyz", entities=("Ada", "Enigma"))
    scores = {hit.memory.text: hit.lanes["entity"][1] for hit in hits}
    assert scores[FACTS[0]] == max(scores.values())
    assert all(scores[FACTS[0]] > 5 * scores[text] for text in FACTS[1:])


async def test_an_entity_that_was_merged_is_found_under_both_names(
    here: Remembering, user: User, other: User
) -> None:
    text = "The piano is out of tune again"
    await here.add(user.id, text, about=[("Liz", "PERSON")])
    await here.add(user.id, "The bicycle has a flat tyre", about=[("Elizabeth", "PERSON")])
    liz, elizabeth = sorted(await here.memories.entities(user.id), key=lambda e: -len(e.name) % 7)
    into, away = (liz, elizabeth) if liz.name == "Elizabeth" else (elizabeth, liz)
    merged = await here.memories.merge_entities(user.id, into.id, [away.id], actor="entities")
    assert (merged.name, merged.memories) == ("Elizabeth", 2)
    for name in ("Liz", "Elizabeth"):
        hits = await here.find(user.id, "zzz", entities=(name,))
        assert {hit.memory.text for hit in hits if "entity" in hit.lanes} == {
            text, "The bicycle has a flat tyre",
        }  # fmt: skip
    again = await here.add(user.id, "Her violin is very old", about=[("liz", "PERSON")])
    assert [e.name for e in again.memory.entities] == ["Elizabeth"]
    assert len(await here.memories.entities(user.id)) == 1
    assert await here.memories.entities(other.id) == []


async def test_what_was_superseded_ranks_below_and_brings_what_stands_now(
    here: Remembering, user: User
) -> None:
    old = (await here.add(user.id, "Ada lives in Vienna")).memory
    mid = await here.add(user.id, "Ada moved to Graz", supersedes=(old.id,))
    now = await here.add(user.id, "Ada moved on to Berlin", supersedes=(mid.memory.id,))
    for text in FACTS[2:]:
        await here.add(user.id, text)
    hits = await here.find(user.id, "does Ada live in Vienna?")
    [found] = [hit for hit in hits if hit.memory.id == old.id]
    assert found.relevance == 1.0
    assert found.score == pytest.approx(0.3 * (0.9 + 0.25 * found.importance))
    assert found.linked[0].memory.id == now.memory.id


async def test_as_of_a_date_what_was_true_then_is_found(here: Remembering, user: User) -> None:
    start = here.clock.now()
    old = (await here.add(user.id, "Ada lives in Vienna", valid_from=start - 300 * DAY)).memory
    await here.add(
        user.id, "Ada lives in Berlin", supersedes=(old.id,), valid_from=start - 100 * DAY
    )
    for days, wanted in (
        (-400, []),
        (-200, ["Ada lives in Vienna"]),
        (-50, ["Ada lives in Berlin"]),
    ):
        found = await here.find(user.id, "where does Ada live", as_of=start + days * DAY)
        assert [hit.memory.text for hit in found] == wanted
        assert all(hit.linked == () for hit in found)


async def test_linked_memories_come_along_at_most_two_each_and_none_twice(
    here: Remembering, user: User
) -> None:
    await fill(here, user)
    dog = (await here.find(user.id, "Rex"))[0].memory
    for text, kind in (
        ("The vet opens at nine", "contextualizes"),
        ("Peanuts are bad for dogs", "conflicts"),
        ("There is a park nearby", "shares_entity"),
        ("Bones are kept in the cellar", "refines"),
    ):
        new = (await here.add(user.id, text)).memory
        await here.memories.link(user.id, new.id, dog.id, kind, actor="linking")  # type: ignore[arg-type]
    [hit] = await here.find(user.id, "Rex", limit=1)
    assert [x.memory.text for x in hit.linked] == [
        "Peanuts are bad for dogs", "Bones are kept in the cellar",
    ]  # fmt: skip
    hits = await here.find(user.id, "Rex", limit=20)
    shown = [hit.memory.id for hit in hits]
    assert not {x.memory.id for hit in hits for x in hit.linked} & set(shown)


async def test_importance_decides_between_equals_and_new_memories_have_a_debut(
    here: Remembering, user: User
) -> None:
    used = (await here.add(user.id, "The blue folder holds contracts of 2019")).memory
    await here.add(user.id, "The blue folder holds contracts of 2020")
    for _ in range(3):
        await here.memories.used(user.id, [used.id], turn_id=await here.turn(user.id))
    hits = await here.find(user.id, "blue folder of contracts")
    assert hits[0].memory.id == used.id
    assert hits[0].importance > hits[1].importance
    await here.live(user.id, 10)
    later = (await here.find(user.id, "blue folder of contracts"))[0]
    assert later.score < hits[0].score - 0.15 * hits[0].relevance + 1e-6


async def test_scores_are_as_of_the_moment_of_the_search(here: Remembering, user: User) -> None:
    await here.add(user.id, "Ada sees the dentist", happens_at=here.clock.now() + 5 * DAY)
    first = (await here.find(user.id, "dentist"))[0].importance
    here.clock.advance(5 * 86_400 - 60)
    second = (await here.find(user.id, "dentist"))[0].importance
    here.clock.advance(100 * 86_400)
    assert second > first > (await here.find(user.id, "dentist"))[0].importance


async def test_shared_memories_are_found_by_everybody_tagged_and_changed_by_nobody(
    here: Remembering, user: User, other: User
) -> None:
    shared = (await here.memories.add_shared(
        NewMemory(text="The office closes at six on Fridays", source="import")
    )).memory  # fmt: skip
    await here.add(user.id, "Ada lives in Vienna")
    for person in (user, other):
        hits = await here.find(person.id, "when does the office close?")
        assert hits[0].memory.id == shared.id
        assert [hit.shared for hit in hits] == [True] + [False] * (len(hits) - 1)
        assert (
            await here.memories.used(person.id, [shared.id], turn_id=await here.turn(person.id))
            == []
        )
        with pytest.raises(NotFound):
            await here.memories.archive(person.id, shared.id, actor="user")
    assert texts_of(await here.memories.shared()) == [shared.text]
    await here.memories.remove_shared(shared.short_id)
    assert await here.texts(other.id, "when does the office close?") == []
    assert await here.memories.page(SHARED) == []


async def test_every_search_leaves_a_trace_that_shrinks_to_ids_and_scores_in_a_month(
    here: Remembering, user: User, other: User
) -> None:
    await fill(here, user)
    turn = await here.turn(user.id)
    query = RecallQuery(phrases=("Volvo",), entities=("Ada",), limit=2)
    ranking = await here.memories.search(user.id, query, turn_id=turn, purpose="turn")
    assert ranking.trace_id is not None
    best = ranking.hits[0].memory.id
    async with here.database.user(user.id) as tx:
        [trace] = await traces.of_turn(tx, user.id, turn)
        await traces.note(tx, user.id, trace.id, surfaced=[best], used=[best])
        assert await traces.thin(tx, user.id, here.clock.now() + 29 * DAY) == 0
        whole = await traces.get(tx, user.id, trace.id)
    assert whole.query is not None
    assert (whole.query["phrases"], whole.query["found"]["lexical"]) == (["Volvo"], 1)
    assert (whole.surfaced, whole.used, whole.purpose) == ((best,), (best,), "turn")
    assert [r["kept"] for r in whole.results] == [True] * 2 + [False] * (len(whole.results) - 2)
    assert whole.results[0]["lanes"]["lexical"][0] == 1
    async with here.database.user(user.id) as tx:
        assert await traces.thin(tx, user.id, here.clock.now() + 31 * DAY) == 1
        thin = await traces.get(tx, user.id, trace.id)
        assert await traces.thin(tx, user.id, here.clock.now() + 31 * DAY) == 0
    assert thin.query is None
    assert thin.results == [{"id": r["id"], "score": r["score"]} for r in whole.results]
    async with here.database.user(other.id) as tx:
        assert await traces.of_turn(tx, other.id, turn) == []
        with pytest.raises(NotFound):
            await traces.get(tx, other.id, trace.id)


async def test_without_an_encoder_words_still_find_and_the_ranking_says_so(
    here: Remembering, user: User
) -> None:
    await fill(here, user)
    blind = Memories(here.database, OneEncoder(None), None, here.clock, here.ids)
    ranking = await blind.search(user.id, RecallQuery(phrases=("green Volvo",)))
    assert ranking.dense == "no encoder"
    assert [hit.memory.text for hit in ranking.hits] == [FACTS[3]]


async def test_a_large_store_is_searched_by_signs_first_and_finds_the_same(
    here: Remembering, user: User, other: User
) -> None:
    for n, text in enumerate(FACTS * 5):
        await here.add(user.id, f"{text}, as was said {n} days ago")
    encoder = here.encoders.current
    assert encoder is not None
    async with here.database.user(user.id) as tx:
        ours = await spaces.find(tx, user.id)
        assert ours is not None
        for phrase in ("which instrument does she play", "the green car", "peanuts"):
            [asked] = (await encoder.queries([phrase])).tolist()
            found = [
                await vectors.nearest(
                    tx, user.id, Source.MEMORIES, ours.active, asked, documents=documents, limit=10,
                    without=(3, 7),
                )
                for documents in (40, 100_000)
            ]  # fmt: skip
            assert found[0] == found[1]
            signs = await signatures.read(tx, user.id, Source.MEMORIES, ours.active)
            pool = signs.nearest(asked, limit=20)
            assert len(pool) == 20
            assert found[0][0].doc in pool
    async with here.database.user(other.id) as tx:
        signs = await signatures.read(tx, other.id, Source.MEMORIES, ours.active)
        assert signs.nearest(asked, limit=20) == []


async def test_reciprocal_ranks_can_be_chosen_instead(here: Remembering, user: User) -> None:
    await fill(here, user)
    ranked = Memories(here.database, here.encoders, None, here.clock, here.ids, Blend(fusion="rrf"))
    ranking = await ranked.search(user.id, RecallQuery(phrases=("green Volvo",)))
    assert ranking.hits[0].memory.text == FACTS[3]


async def test_the_picture_holds_what_is_linked_and_what_it_is_about(
    here: Remembering, user: User
) -> None:
    one = (await here.add(user.id, FACTS[0], about=[("Ada", "PERSON")])).memory
    two = (await here.add(user.id, FACTS[2], about=[("Rex", "OTHER")])).memory
    await here.add(user.id, FACTS[3])
    await here.memories.link(user.id, one.id, two.id, "other", actor="user")
    whole = await here.memories.graph(user.id)
    assert len(whole.memories) == 3
    assert [(e.from_id, e.to_id) for e in whole.links] == [(one.id, two.id)]
    assert {e.name for e in whole.entities} == {"Ada", "Rex"}
    around = await here.memories.graph(user.id, around=two.short_id)
    assert {m.id for m in around.memories} == {one.id, two.id}
    assert len((await here.memories.graph(user.id, limit=1)).memories) == 1


async def test_the_explanation_is_of_the_score_that_is_stored(
    here: Remembering, user: User
) -> None:
    one = (await here.add(user.id, FACTS[0], about=[("Ada", "PERSON")])).memory
    two = (await here.add(user.id, FACTS[1], about=[("Ada", "PERSON")])).memory
    await here.memories.link(user.id, two.id, one.id, "other", actor="user")
    await here.live(user.id, 4)
    async with here.database.user(user.id) as tx:
        assert await here.memories.recalculate(tx, user.id) == 2
        assert await here.memories.recalculate(tx, user.id) == 0
    said = await here.memories.explain(user.id, one.id)
    stored = await here.memories.get(user.id, one.id)
    assert (said.age, said.hub, said.entity_hub) == (4, 0.04, 0.005)
    assert said.score == pytest.approx(stored.importance, abs=1e-6)
