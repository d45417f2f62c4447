"""What models answer to the Subcortex's question, in all the shapes in which they do."""

from __future__ import annotations

from time import perf_counter
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mira.actors.subcortex_answer import (
    ENTITIES,
    LONGEST,
    LONGEST_PHRASE,
    PHRASES,
    Reading,
    read,
)
from mira.messages.subcortex import Complexity, InContext

ONE = InContext(id=UUID(int=1), short_id="mem_00000001", importance=0.5, text="one")
TWO = InContext(id=UUID(int=2), short_id="mem_0a1b2c3d", importance=0.4, text="two")
OFFERED = (ONE, TWO)

WHOLE = Reading(
    phrases=("weight of the Dahon folding bike", "commute by train"),
    entities=("Dahon", "Graz"),
    retain=(TWO.id,),
    complexity=Complexity.STRAIGHTFORWARD,
)
JSON = (
    '{"phrases": ["weight of the Dahon folding bike", "commute by train"], '
    '"entities": ["Dahon", "Graz"], "keep": ["mem_0a1b2c3d"], "complexity": "straightforward"}'
)
XML = """<topic>weight of the Dahon folding bike</topic>
<phrases><phrase>commute by train</phrase></phrases>
<entities><entity>Dahon</entity><entity>Graz</entity></entities>
<keep>mem_0a1b2c3d</keep><complexity>straightforward</complexity>"""
LINES = """Topic: weight of the Dahon folding bike
Also: commute by train
Names: Dahon, Graz
Keep: mem_0a1b2c3d
Complexity: straightforward"""
MARKDOWN = """**Phrases:**
- weight of the Dahon folding bike
- "commute by train"

**Entities:**
1. Dahon
2. Graz

**Keep:** mem_0a1b2c3d
**Complexity:** Straightforward."""


@pytest.mark.parametrize(
    "answer",
    [
        JSON,
        f"```json\n{JSON}\n```",
        f"Sure! Here is what the message is about:\n\n{JSON}\n\nLet me know if I can help.",
        f"<think>The user asks {{about}} a bike.</think>{JSON}",
        JSON.replace('"', "'"),
        JSON.replace('"keep"', '"retain"').replace('"phrases"', '"search_phrases"'),
        f"[{JSON}]",
        f'{{"result": {JSON}}}',
        JSON.replace('"], "entities"', '", ], "entities"'),
        '{"topic": "weight of the Dahon folding bike", "also": "commute by train", '
        '"names": "Dahon, Graz", "keep": "mem_0a1b2c3d", "complexity": "Straightforward"}',
        '{"phrases": [{"phrase": "weight of the Dahon folding bike"}, {"text": "commute by train"}]'
        ', "entities": [{"name": "Dahon", "type": "PRODUCT"}, {"name": "Graz", "type": "GPE"}], '
        '"keep": [{"id": "MEM_0A1B2C3D"}], "complexity": {"level": "straight-forward"}}',
        XML,
        f"Here you go:\n```xml\n<answer>{XML}</answer>\n```",
        LINES,
        f"Of course.\n\n{LINES}",
        MARKDOWN,
    ],
    ids=[
        "json", "fenced", "with prose", "with thoughts", "single quotes", "other names",
        "list of one", "wrapped", "comma too many", "short form", "objects", "tags",
        "tags in a fence", "lines", "lines with prose", "markdown",
    ],
)  # fmt: skip
def test_an_answer_is_understood_in_every_shape_that_models_give_it(answer: str) -> None:
    assert read(answer, OFFERED) == WHOLE


@pytest.mark.parametrize(
    "answer",
    [
        "", "   ", "{}", "[]", "I am sorry, but I cannot help with that.",
        '{"phrases": [], "entities": ["Graz"], "keep": [], "complexity": "straightforward"}',
        '{"phrases": ["...", "none", " "], "complexity": "complex"}', "null", "42",
        "The cat was a cat.", "{" * 200, '{"a":' * 1500, "x" * 30_000,
    ],
)  # fmt: skip
def test_an_answer_without_a_phrase_to_search_for_is_none(answer: str) -> None:
    assert read(answer, OFFERED) is None


def test_what_is_whole_of_an_answer_that_was_cut_off_serves_as_well() -> None:
    reading = read(JSON[:60], OFFERED)
    assert reading is not None
    assert reading.phrases[0] == "weight of the Dahon folding bike"
    assert reading.complexity is Complexity.COMPLEX


def test_ids_that_were_not_offered_are_left_out() -> None:
    answer = '{"phrases": ["bikes"], "keep": ["mem_ffffffff", "mem_00000001", "all", "mem_1"]}'
    reading = read(answer, OFFERED)
    assert reading is not None
    assert reading.retain == (ONE.id,)


def test_of_many_phrases_the_first_four_count_each_once_and_bounded() -> None:
    many = '", "'.join(["bikes", "Bikes", "x" * 500, "three", "four", "five", "six"])
    reading = read(f'{{"phrases": ["{many}"]}}', ())
    assert reading is not None
    assert len(reading.phrases) == PHRASES
    assert reading.phrases[0] == "bikes"
    assert reading.phrases[2:] == ("three", "four")
    assert max(map(len, reading.phrases)) <= LONGEST_PHRASE


def test_words_that_only_stand_for_a_name_are_no_entities() -> None:
    reading = read('{"phrases": ["a trip"], "entities": ["she", "User", "None", "Nora"]}', ())
    assert reading is not None
    assert reading.entities == ("Nora",)


@pytest.mark.parametrize(
    ("said", "understood"),
    [
        ("straightforward", Complexity.STRAIGHTFORWARD),
        ("Straightforward (a greeting)", Complexity.STRAIGHTFORWARD),
        ("simple", Complexity.STRAIGHTFORWARD),
        ("complex", Complexity.COMPLEX),
        ("not straightforward", Complexity.COMPLEX),
        ("straightforward or complex", Complexity.COMPLEX),
        ("high", Complexity.COMPLEX),
        ("", Complexity.COMPLEX),
    ],
)
def test_what_is_not_clearly_straightforward_is_complex(said: str, understood: Complexity) -> None:
    reading = read(f'{{"phrases": ["bikes"], "complexity": "{said}"}}', ())
    assert reading is not None
    assert reading.complexity is understood


def test_without_a_word_on_it_a_message_is_complex() -> None:
    reading = read('{"phrases": ["bikes"]}', ())
    assert reading is not None
    assert reading.complexity is Complexity.COMPLEX


@pytest.mark.parametrize("escape", [r"\u0000", r"\ud800"])
@pytest.mark.parametrize("end", ["]}", "], "])
def test_what_no_database_holds_is_not_let_in_by_an_escape(escape: str, end: str) -> None:
    reading = read(f'{{"phrases": ["a{escape}bike"{end}', ())
    assert reading is not None
    assert reading.phrases == ("a\ufffdbike",)


@pytest.mark.parametrize("blank", [" ", "\t", "\u2003"])
def test_an_answer_of_blanks_holds_up_nobody(blank: str) -> None:
    began = perf_counter()
    reading = read(f"phrases: a{blank * (LONGEST - 20)}b", ())
    assert perf_counter() - began < 1
    assert reading is not None


@given(st.text(max_size=300) | st.text("{}[]<>\"':,/mem_phrasetopic \n", max_size=200))
def test_whatever_is_answered_is_read_without_an_error_and_within_bounds(answer: str) -> None:
    reading = read(answer, OFFERED)
    if reading is not None:
        assert 1 <= len(reading.phrases) <= PHRASES
        assert len(reading.entities) <= ENTITIES
        assert set(reading.retain) <= {ONE.id, TWO.id}
