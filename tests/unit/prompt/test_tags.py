"""Our marks in the prompt cannot be imitated, and nothing else is touched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mira.prompt.tags import neutral, passage, quoted


@pytest.mark.parametrize(
    "forged",
    [
        "<mira:now>",
        "</mira:now>",
        "< / MIRA : memories>",
        "<\u200bmi\u00adra\u2060:now>",
        "＜mira：now>",
        "<\nmira:now",
        "<mira:anything the next version may use>",
    ],
)
def test_what_looks_like_a_tag_of_ours_is_one_no_more(forged: str) -> None:
    text = f"Before {forged} after."
    freed = neutral(text)
    assert freed != text
    assert freed == text.replace(forged[0], "‹", 1)
    assert neutral(freed) == freed


@pytest.mark.parametrize(
    "text", ["<b>bold</b>", "a < b", "<mirror:now>", "mira: hello", "<admira:now>", "x<<y", "<"]
)
def test_other_peoples_marks_stay_as_they_are(text: str) -> None:
    assert neutral(text) is text or neutral(text) == text


def test_a_megabyte_of_brackets_and_blanks_is_read_in_a_moment() -> None:
    for hostile in ("<" * 1_000_000, "<" + " " * 1_000_000, "< / m i r a " * 80_000):
        assert len(neutral(hostile)) == len(hostile)


@given(st.text(), st.integers(5, 80))
def test_a_quotation_is_one_short_line(text: str, most: int) -> None:
    line = quoted(text, most)
    assert len(line) <= most
    assert len(line.splitlines()) <= 1


@given(st.text(), st.integers(5, 80))
def test_a_passage_keeps_its_lines_and_its_bound(text: str, most: int) -> None:
    kept = passage(text, most)
    assert len(kept) <= most
    if len(text.strip()) <= most:
        assert kept == neutral(text.strip())
