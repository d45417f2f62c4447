"""When a new text says nothing that an old one does not say."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mira.memory.duplicates import repeats, says_more

DAY = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("ada lives in vienna", "Ada lives in Vienna."),
        ("The user likes pizza", "User likes pizza"),
        ("Ada works at Google", "Ada works at Google in Zurich"),
        ("She has a dog", "Ada has a dog"),
        ("Ada's meeting is at 5", "Ada's meeting is at 5 on day 3"),
        ("Ada is living in Vienna", "Ada lives in Vienna"),
        ("Ada doesn't eat meat", "Ada does not eat meat"),
        ("Ada earns 4,500 euros", "Ada earns 4500 euros."),
        ("ADA’S CAFÉ IS IN STRASSE 5", "Ada's café is in Straße 5"),
        ("阿达住在维也纳", "阿达住在维也纳"),
    ],
)
def test_the_same_and_less_are_repetitions(new: str, old: str) -> None:
    assert not says_more(new, old)
    assert repeats(new, old, 0.95, None, None)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("Ada's meeting is at 6", "Ada's meeting is at 5"),
        ("Ada's meeting is at 5 on day 3", "Ada's meeting is at 5"),
        ("Ada never eats fish", "Ada eats fish"),
        ("Ada doesn't smoke", "Ada does smoke"),
        ("Anna has a dog", "Hanna has a dog"),
        ("My sister Anna has a dog", "My sister Hanna has a dog"),
        ("Ada works at Google in Zurich", "Ada works at Google"),
    ],
)
def test_another_number_name_or_negation_is_more(new: str, old: str) -> None:
    assert says_more(new, old)
    assert not repeats(new, old, 0.99, None, None)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("Bob owes Ada two hundred", "Ada owes Bob two hundred"),
        ("Ada has three cats at home", "Ada has two cats at home"),
        ("Her right knee hurts", "Her left knee hurts"),
        ("He arrives after dinner", "He arrives before dinner"),
        ("Ada wants to sell a house", "Ada wants to buy a house"),
        ("Ada is unmarried and happy", "Ada is married and happy"),
        ("Ada loves her job", "Ada loved her job"),
        ("Ada was a nurse", "Ada is a nurse"),
        ("Ada is a nurse", "Ada was a nurse"),
        ("Ada has a dog", "Ada wants a dog"),
        ("Ada bought a house", "Ada almost bought a house"),
        ("Ada has a sick cat", "Ada has a cat"),
        ("It is -5 degrees in the cellar", "It is 5 degrees in the cellar"),
        ("The ticket costs 5 €", "The ticket costs 5 $"),
        ("\U0001f62d" * 12, "\U0001f600" * 12),
        ("彼女は大阪に住んでいます", "彼女は東京に住んでいます"),
        ("היא גרה בחיפה היום", "היא גרה בירושלים היום"),
        ("она живёт в вене", "она живёт в граце"),
    ],
)
def test_any_other_word_or_order_is_more_in_every_script(new: str, old: str) -> None:
    assert says_more(new, old)
    assert not repeats(new, old, 0.99, None, None)


def test_less_is_a_repetition_only_where_it_also_means_the_same() -> None:
    new, old = "Ada works at Google", "Ada works at Google in Zurich on the search engine"
    assert not repeats(new, old, 0.91, None, None)
    assert repeats(new, old, 0.93, None, None)


def test_a_paraphrase_is_left_to_those_who_can_read() -> None:
    assert not repeats("she is fond of cats", "cats are what she loves", 0.99, None, None)


def test_two_dates_are_two_facts_and_one_date_is_none_against() -> None:
    text = "Ada sees the dentist"
    assert repeats(text, text, 1.0, DAY, DAY)
    assert repeats(text, text, 1.0, DAY, None)
    assert not repeats(text, text, 1.0, DAY, DAY.replace(day=2))


@given(st.text(max_size=300))
def test_every_text_repeats_itself(text: str) -> None:
    assert repeats(text, text, 1.0, None, None)
