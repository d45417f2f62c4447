"""What was said is found again: by its words, by what it means, by what was said beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from mira.errors import ValidationFailed
from mira.memory.indexing import NoEncoders
from mira.store.database import Database
from mira.store.users import User
from tests.support.chat import BEGAN, Chat
from tests.support.memory import real_encoders

pytestmark = pytest.mark.anyio

GARDEN = (
    "The heron stood in the river again this morning.",
    "- Did it catch anything?",
    "A trout, and then it flew off to the mill.",
    "- Lovely. Do you go there often?",
    "Every Sunday, with my sister Lena.",
)
KITCHEN = (
    "I bought a cello yesterday, second hand.",
    "- How many strings were broken?",
    "Two. I play it badly and the neighbours complain.",
    "- Practise with a mute, then.",
    "My dentist moved the appointment to Friday.",
    "- I will remind you.",
)
#: So that what is asked for is not simply everything.
TALK = tuple(
    f"{'- ' if n % 2 else ''}{what} number {n} was fine and we talked about {other}."
    for n in range(8)
    for what, other in (("The meeting", "budgets"), ("The lunch", "weather"), ("The train", "work"))
)


@pytest.fixture
async def chat(database: Database, user: User) -> AsyncIterator[Chat]:
    """A few days of talk, over the real model."""
    async with real_encoders() as encoders:
        made = Chat(database, encoders, user)
        await made.say(GARDEN, TALK, KITCHEN)
        yield made


@pytest.fixture
async def words_only(database: Database, user: User) -> Chat:
    """The same without any model."""
    made = Chat(database, NoEncoders(), user)
    await made.say(GARDEN, TALK, KITCHEN)
    return made


async def test_a_message_is_found_by_its_words_in_another_form(words_only: Chat) -> None:
    assert (await words_only.lines("herons standing"))[0] == GARDEN[0]


async def test_a_message_is_found_by_what_it_means(chat: Chat) -> None:
    assert KITCHEN[0] in (await chat.lines("Which musical instrument does Ada own?"))[:3]


async def test_an_answer_is_found_by_the_question_before_it(chat: Chat) -> None:
    assert KITCHEN[2] in (await chat.lines("How many strings were broken?"))[:2]


async def test_several_phrases_each_find_what_answers_them(chat: Chat) -> None:
    found = await chat.lines("heron in the river", "dentist appointment")
    assert {GARDEN[0], KITCHEN[4]} <= set(found[:4])


async def test_who_is_named_is_whose_words_count(database: Database, user: User) -> None:
    made = Chat(database, NoEncoders(), user)
    await made.say(("I would like tea with lemon.", "- I would like tea with milk."), TALK)
    assert (await made.lines("Which tea did Ada like?"))[0] == "I would like tea with lemon."
    assert (await made.lines("Which tea did Ben like?"))[0] == "I would like tea with milk."


async def test_what_the_prompt_holds_already_is_not_found_again(chat: Chat) -> None:
    first = (await chat.found("heron in the river")).hits[0]
    again = await chat.found("heron in the river", exclude=frozenset({first.message_id}))
    assert first.message_id not in {hit.message_id for hit in again.hits}
    assert again.hits


async def test_what_was_said_later_is_not_found_as_of_an_earlier_day(chat: Chat) -> None:
    then = BEGAN + timedelta(days=1, hours=-1)
    found = await chat.found("cello strings heron", as_of=then)
    assert found.hits
    assert all(hit.said_at <= then for hit in found.hits)


async def test_nothing_of_another_user_is_ever_found(chat: Chat, other: User) -> None:
    theirs = Chat(chat.database, chat.encoders, other)
    await theirs.say(("A heron of my own.",))
    assert await theirs.lines("heron in the river with a trout and a cello") == [
        "A heron of my own."
    ]


async def test_without_an_encoder_words_decide_and_that_is_said(words_only: Chat) -> None:
    found = await words_only.found("trout at the mill")
    assert found.dense == "no vectors yet"
    assert (await words_only.lines("trout at the mill"))[0] == GARDEN[2]


async def test_every_place_is_explained_by_what_it_is_made_of(chat: Chat) -> None:
    found = await chat.found("What did Ada buy yesterday?")
    assert found.hits[0].relevance == 1
    for hit in found.hits:
        assert sum(hit.contributions.values()) == pytest.approx(hit.score, abs=1e-6)
    ranked = [hit.relevance for hit in found.hits]
    assert ranked == sorted(ranked, reverse=True)
    assert found.hits[0].lanes["meaning"][1] <= 1.001


async def test_names_that_are_given_count_as_asked_for(words_only: Chat) -> None:
    assert (await words_only.lines("walks", entities=("Lena",)))[0] == GARDEN[4]
    assert (await words_only.lines(entities=("Lena",)))[0] == GARDEN[4]


@pytest.mark.parametrize("phrases", [(), ("",), (" \n ", "\0"), ("\ud800",)])
async def test_a_search_for_nothing_is_refused(words_only: Chat, phrases: tuple[str, ...]) -> None:
    with pytest.raises(ValidationFailed):
        await words_only.found(*phrases)


@pytest.mark.parametrize(
    "phrase",
    ["the of and", "x", "?!", "猫", "\ud800 x", "'; drop table passages; --", "a " * 50_000],
)
async def test_strange_phrases_find_something_or_nothing(chat: Chat, phrase: str) -> None:
    found = await chat.found(phrase)
    assert len(found.hits) <= 20


async def test_an_empty_history_has_nothing(database: Database, user: User) -> None:
    assert await Chat(database, NoEncoders(), user).lines("anything at all") == []


async def test_languages_without_spaces_are_found(database: Database, user: User) -> None:
    made = Chat(database, NoEncoders(), user)
    await made.say(("我的猫很可爱", "今天下雨了", "שלום עולם", "Привет, цапля!"))
    assert (await made.lines("猫"))[0] == "我的猫很可爱"
    assert (await made.lines("下雨"))[0] == "今天下雨了"
    assert (await made.lines("שלום"))[0] == "שלום עולם"
    assert (await made.lines("цапля"))[0] == "Привет, цапля!"


async def test_exact_words_come_first_where_they_are_asked_for(chat: Chat) -> None:
    assert (await chat.lines("the neighbours complain", intent="exact"))[0] == KITCHEN[2]
    assert not (await chat.found("neighbours", intent="exact")).hits[0].contributions
