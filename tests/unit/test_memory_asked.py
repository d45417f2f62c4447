"""What is read from a question: whose words, when, how many."""

from __future__ import annotations

from datetime import date

import pytest

from mira.memory.asked import SaidDate, counted, days_apart, in_month, read, said_date, timed
from mira.messages.content import Role


def test_a_name_says_who_and_is_not_looked_for_by_meaning() -> None:
    asked = read("What did Ada Lovelace's sister buy?", "Ada Lovelace", "MIRA")
    assert asked.speaker is Role.USER
    assert asked.content == "What did sister buy?"
    assert "ada" in asked.terms


def test_where_both_or_nobody_are_named_no_one_is_meant() -> None:
    assert read("Where did Ada and Ben meet?", "Ada", "Ben").speaker is None
    assert read("Where did they meet?", "Ada", "Ben").speaker is None


def test_a_name_inside_another_word_names_nobody() -> None:
    assert read("Is Adam Canadian?", "Ada", "Ben").speaker is None


def test_a_phrase_of_names_alone_is_kept() -> None:
    assert read("Ada?", "Ada", "Ben").content == "Ada?"


def test_who_asks_about_himself_wants_his_own_words() -> None:
    assert read("Where did I put my keys?", "Ada", "MIRA").own
    asked = read("What did you recommend for my garden?", "Ada", "MIRA")
    assert asked.of_assistant
    assert not asked.own


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        ("on 8 May, 2023", SaidDate(2023, 5, 8)),
        ("on May 8th", SaidDate(None, 5, 8)),
        ("the 3rd of march 2024", SaidDate(2024, 3, 3)),
        ("in September", SaidDate(None, 9)),
        ("in May 2022", SaidDate(2022, 5)),
        ("during 2021", SaidDate(2021)),
        ("on 2023-05-08", SaidDate(2023, 5, 8)),
        ("may I march on in august company", None),
        ("room 2023-99", SaidDate(2023)),
        ("nothing", None),
    ],
)
def test_a_date_is_read_as_far_as_it_is_named(phrase: str, expected: SaidDate | None) -> None:
    assert said_date(phrase) == expected


def test_days_that_do_not_exist_are_near_to_nothing() -> None:
    assert days_apart(SaidDate(2023, 2, 30), date(2023, 2, 28)) is None
    assert days_apart(SaidDate(None, 12, 31), date(2024, 1, 1)) == 1
    assert in_month(SaidDate(None, 5), date(2020, 5, 1))
    assert not in_month(SaidDate(2023, 5), date(2022, 5, 1))


def test_when_and_how_many_are_known_by_their_words() -> None:
    assert timed("We met last week")
    assert counted("She has two cats")
    assert not timed("She has two cats")
    assert not counted("A lovely cat")
