"""Text becomes terms the same way whatever its form, its script, or its length."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mira.memory.terms import asks, clean, fold, term_frequencies, terms, unique_terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("John's dogs were running", ["john", "dog", "run"]),
        ("Café ÉCOLE naïve", ["cafe", "ecol", "naiv"]),
        ("don\u2019t won't can't you\u2019re she's", []),
        ("the 3rd of May, $4,500 for v5.3.0", ["3", "may", "4500", "v5.3.0"]),
        ("我的猫", ["我", "我的", "的", "的猫", "猫"]),
        ("สวัส", ["สว", "วั", "ัส"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("שלום עולם", ["שלום", "עולם"]),
        ("\0 \ud800 ?! \u200d", []),
    ],
)
def test_what_a_text_is_found_by(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_case_and_composition_make_no_difference(text: str) -> None:
    assert terms(clean(text)) == terms(text)
    assert fold(fold(text)) == fold(text)


@given(st.text(max_size=200))
def test_no_text_is_too_strange(text: str) -> None:
    found = term_frequencies(text)
    assert all(term and len(term) <= 48 for term in found)
    assert set(unique_terms([text, text])) == set(found)


def test_a_very_long_text_is_cut_into_words_like_any_other() -> None:
    assert term_frequencies("heron " * 50_000) == {"heron": 50_000}
    assert len(terms("x" * 100_000)[0]) <= 48


@pytest.mark.parametrize("text", ["Did it?", "吗？", "هل؟"])
def test_a_question_is_known_by_its_mark(text: str) -> None:
    assert asks(text)
    assert not asks("No.")
