"""What is shown of a long message that was found."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mira.memory.excerpt import excerpt

FILLER = "We talked about the weather and about the garden for quite some time. "
VALVE = "The plumber comes on the 14th and brings a new valve for the boiler. "


def test_a_short_text_is_shown_whole() -> None:
    assert excerpt(" The plumber comes. ", ["opera"], most=100) == "The plumber comes."


def test_of_a_long_text_the_sentences_that_answer_are_shown() -> None:
    text = FILLER * 20 + VALVE + FILLER * 20
    shown = excerpt(text, ["the plumber and the boiler's valve"], most=200)
    assert VALVE.strip() in shown
    assert shown.startswith(("… We talked", "… The plumber"))
    assert shown.endswith(" …")


def test_where_nothing_answers_the_beginning_is_shown() -> None:
    text = VALVE + FILLER * 20
    assert excerpt(text, ["opera"], most=200).startswith("The plumber comes")


def test_a_text_without_sentences_is_cut_between_words() -> None:
    shown = excerpt("word " * 400 + "valve " + "word " * 400, ["valve"], most=120)
    assert "valve" in shown.split()


@given(st.text(max_size=400), st.lists(st.text(max_size=20), max_size=3), st.integers(20, 120))
def test_an_excerpt_is_never_longer_than_asked_for(text: str, said: list[str], most: int) -> None:
    shown = excerpt(text, said, most=most)
    assert len(shown) <= most
    assert shown.removeprefix("… ").removesuffix(" …") in text
