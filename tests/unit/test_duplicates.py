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


def test_unlike_texts_repeat_each_other_only_by_their_meaning() -> None:
    new, old = "she is fond of cats", "cats are what she loves most"
    assert not repeats(new, old, 0.91, None, None)
    assert repeats(new, old, 0.93, None, None)


def test_two_dates_are_two_facts_and_one_date_is_none_against() -> None:
    text = "Ada sees the dentist"
    assert repeats(text, text, 1.0, DAY, DAY)
    assert repeats(text, text, 1.0, DAY, None)
    assert not repeats(text, text, 1.0, DAY, DAY.replace(day=2))


@given(st.text(max_size=300))
def test_every_text_repeats_itself(text: str) -> None:
    assert repeats(text, text, 1.0, None, None)
