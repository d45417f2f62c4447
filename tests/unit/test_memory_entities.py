"""Names: when two are the same, and when they may be."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mira.memory.entities import Named, likeness, merge_proposals, normalise


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("Anna Müller", "anna muller"),
        ("ANNA  MÜLLER", "Anna\tMu\u0308ller"),
        ("Anna's", "Anna"),
        ("Anna’s", "Anna"),
        ("the Johnsons'", "Johnsons"),
        ("Anna's sister", "Anna sister"),
        ("The Eiffel Tower", "eiffel tower"),
        ("a Beatles song", "Beatles song"),
        ("“Hamlet”", "hamlet"),
        ("Straße", "STRASSE"),
        ("ΟΔΥΣΣΕΥΣ", "Οδυσσεύς"),
        ("Żółw", "zołw"),
        ("  Vienna,\n", "Vienna"),
    ],
)
def test_writing_makes_no_other_name(name: str, same: str) -> None:
    assert normalise(name) == normalise(same)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("Theo", "o"),
        ("The", ""),
        ("A", ""),
        ("James", "Jame"),
        ("James'", "Jame"),
        ("Anna", "Hanna"),
        ("flat 12", "flat 13"),
        ("C++", "C"),
        ("C#", "C"),
        (".NET", "net"),
        ("ガ", "カ"),
        ("कि", "क"),
        ("東京", "京都"),
    ],
)
def test_what_tells_names_apart_stays(name: str, other: str) -> None:
    assert normalise(name) != normalise(other)


@given(st.text(max_size=60))
def test_the_form_of_a_form_is_itself(name: str) -> None:
    assert normalise(normalise(name)) == normalise(name)


@given(st.text(max_size=60))
def test_composed_and_decomposed_are_one_name(name: str) -> None:
    assert normalise(unicodedata.normalize("NFD", name)) == normalise(
        unicodedata.normalize("NFC", name)
    )


LATIN = st.text(st.characters(min_codepoint=32, max_codepoint=0x24F), max_size=40)


@given(LATIN)
def test_case_blanks_and_articles_never_matter(name: str) -> None:
    form = normalise(name)
    assert normalise(f"  {form.upper().lower()} \n") == normalise(form.upper())
    if form:
        assert normalise(f"the {form}") == form
        assert normalise(f"{form}'s") == form or form.endswith("'")


@given(st.text(max_size=40))
def test_a_form_has_no_blanks_around_it_and_single_ones_inside(name: str) -> None:
    assert normalise(name) == " ".join(normalise(name).split())


@given(LATIN, LATIN)
def test_likeness_is_mutual_and_between_nothing_and_one(one: str, other: str) -> None:
    one, other = normalise(one), normalise(other)
    assert 0 <= likeness(one, other) <= 1
    assert likeness(one, other) == likeness(other, one)
    assert likeness(one, one) == 1


def named(*names: str, kind: str = "PERSON") -> list[Named[str]]:
    return [Named(name, name, kind) for name in names]


def test_names_that_are_nearly_the_same_are_proposed() -> None:
    found = merge_proposals(
        named("Anna Mueller", "Tom Baker", "Anna Müller", "Baker, Tom", "Grace Hopper")
    )
    assert found == [("Anna Mueller", "Anna Müller"), ("Tom Baker", "Baker, Tom")]


def test_a_chain_of_likenesses_is_one_group() -> None:
    chain = named("Katherine", "Katharine", "Katharina", "Catharina")
    assert likeness("katherine", "catharina") < 0.85
    assert merge_proposals(chain) == [tuple(entity.id for entity in chain)]


def test_unlike_types_are_never_one() -> None:
    assert merge_proposals(named("Amazon") + named("Amazons", kind="GPE")) == []
    pair = [*named("Amazon"), Named("river", "Amazon", "LOC")]
    assert merge_proposals(pair, alike=[("Amazon", "river")]) == []


def test_names_that_differ_in_a_figure_are_not_proposed() -> None:
    assert merge_proposals(named("Windows 10", "Windows 11", "Room 101", "Room 110")) == []


def test_likeness_found_elsewhere_joins_groups() -> None:
    entities = named("Robert Smith", "Bob", "Robert Smyth")
    found = merge_proposals(entities, alike=[("Bob", "Robert Smith"), ("Bob", "unknown")])
    assert found == [("Robert Smith", "Bob", "Robert Smyth")]


def test_a_stricter_threshold_proposes_less() -> None:
    entities = named("Jon Smith", "John Smith")
    assert merge_proposals(entities, threshold=0.85)
    assert not merge_proposals(entities, threshold=0.99)


@given(st.lists(LATIN, max_size=12, unique=True))
def test_nobody_is_in_two_groups_or_alone_in_one(names: list[str]) -> None:
    groups = merge_proposals(named(*names), threshold=0.5)
    members = [member for group in groups for member in group]
    assert len(members) == len(set(members))
    assert all(len(group) > 1 for group in groups)
