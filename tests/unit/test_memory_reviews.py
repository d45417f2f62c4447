"""Answers about links, merges, fading memories and names: nothing beyond what was shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mira.errors import ProviderMalformed
from mira.memory import consolidation, entity_merge, floor_review, links_review
from mira.memory.clusters import clusters
from mira.memory.consolidation import AlikeSet, may_be_one
from mira.memory.entity_merge import Candidate
from mira.memory.floor_review import Fading
from mira.memory.links_review import Newcomer, Shown

A, B, C, D = (f"mem_0000000{n}" for n in "abcd")


def _shown(short_id: str, text: str = "Ada has a dog called Rex.") -> Shown:
    return Shown(short_id, "2026-03-01", text)


NEWS = (Newcomer(_shown(A), (_shown(B), _shown(C))), Newcomer(_shown(D), (_shown(C),)))


def links(**lists: Any) -> links_review.LinksReview:
    return links_review.parse(json.dumps(lists), NEWS)


def link(start: str, end: str, kind: str = "refines", **fields: Any) -> dict[str, Any]:
    return {
        "from": start,
        "to": end,
        "type": kind,
        "reason": "because",
        "confidence": 0.8,
        **fields,
    }


# Links.


def test_links_are_taken_in_both_directions_between_a_new_memory_and_its_candidates() -> None:
    found = links(links=[link(A, B), link(C, A, "causes"), link(A.upper(), C, "Shares Entity")])
    assert {(one.from_ref, one.to_ref, one.type) for one in found.links} == {
        (A, B, "refines"), (C, A, "causes"), (A, C, "shares_entity"),
    }  # fmt: skip
    assert found.refused == 0
    assert found.merges == ()


def test_links_to_what_was_not_shown_together_are_refused() -> None:
    found = links(
        links=[
            link(A, A), link(B, C), link(D, B), link("mem_99999999", A), link(A, B, "hates"),
            {"from": A}, link(A, B, "none"), "A to B",
        ]
    )  # fmt: skip
    assert found.links == ()
    # "None" is an answer.
    assert found.refused == 5


def test_either_of_two_may_be_said_to_supersede_the_other() -> None:
    found = links(links=[link(B, A, "supersedes"), link(A, C, "supersedes")])
    assert {(one.from_ref, one.to_ref) for one in found.links} == {(B, A), (A, C)}
    assert found.refused == 0


def test_a_link_said_twice_is_one_and_a_sloppy_confidence_is_a_number() -> None:
    found = links(links=[link(A, B, confidence="90%"), link(A, B, confidence=0.1)])
    assert [one.confidence for one in found.links] == [0.9]
    assert links(links=[link(A, B, confidence="high")]).links[0].confidence == 0.7


def test_only_the_surest_links_of_a_new_memory_are_kept() -> None:
    candidates = tuple(_shown(f"mem_000001{n:02d}") for n in range(20))
    news = [Newcomer(_shown(A), candidates)]
    many = [link(A, c.short_id, confidence=n / 20) for n, c in enumerate(candidates)]
    found = links_review.parse(json.dumps({"links": many}), news)
    assert len(found.links) == links_review.MOST_LINKS
    assert min(one.confidence for one in found.links) == 8 / 20


def test_a_merge_keeps_the_words_of_one_of_the_two_and_no_link_is_left_between_them() -> None:
    found = links(
        links=[link(A, B), link(A, C)],
        merges=[
            {"new": A, "into": B, "keep": A, "text": "Ada owns a palace."},
            {"new": A, "into": C, "keep": C},
            {"new": B, "into": A},
            {"new": D, "into": C, "keep": "mem_99999999"},
        ],
    )
    assert [(m.new, m.into, m.keep) for m in found.merges] == [(A, B, A), (D, C, C)]
    assert [(one.from_ref, one.to_ref) for one in found.links] == [(A, C)]


def test_an_answer_of_links_alone_or_of_merges_alone_is_whole() -> None:
    assert len(links_review.parse(json.dumps([link(A, B)]), NEWS).links) == 1
    assert len(links(merges=[{"new": A, "into": B}]).merges) == 1
    assert links(links=[]).links == ()
    with pytest.raises(ProviderMalformed):
        links_review.parse('{"verdict": "fine", "why": 1}', NEWS)


# Sets that are alike.

_edges = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 12), st.floats(0.85, 1.0)), max_size=40
)


@given(_edges, st.integers(2, 8))
def test_sets_are_bounded_apart_and_cut_where_they_are_least_alike(
    edges: list[tuple[int, int, float]], most: int
) -> None:
    found = clusters(edges, most=most)
    things = [thing for one in found for thing in one]
    assert len(things) == len(set(things))
    assert all(2 <= len(one) <= most for one in found)
    place = {thing: n for n, one in enumerate(found) for thing in one}
    for one in found:
        # Each hangs together by edges of its own.
        reached, grew = {one[0]}, True
        while grew:
            new = {b for a, b, _ in [*edges, *((b, a, s) for a, b, s in edges)] if a in reached}
            new &= set(one)
            grew, reached = bool(new - reached), reached | new
        assert reached == set(one)
    for a, b, _ in edges:
        if a == b:
            continue
        sizes = [len(found[place[thing]]) if thing in place else 1 for thing in (a, b)]
        # Whatever was cut did not fit.
        assert (a in place and place.get(a) == place.get(b)) or sum(sizes) > most


@given(_edges, st.randoms(use_true_random=False))
def test_the_order_of_edges_and_of_their_ends_changes_no_set(edges: Any, random: Any) -> None:
    # A pair may come twice; what it says is then the stronger of the two.
    other = [(b, a, s) if random.random() < 0.5 else (a, b, s) for a, b, s in edges]
    random.shuffle(other)
    assert clusters(other, most=4) == clusters(edges, most=4)


# Consolidation.

SETS = (
    AlikeSet((_shown(A, "Ada has a dog."), _shown(B, "Ada's dog is called Rex."))),
    AlikeSet((_shown(C, "Rent is 900 euros."), _shown(D, "The rent is due on the 1st."))),
)


def proposals(*merges: Any) -> tuple[consolidation.Proposal, ...]:
    return consolidation.parse_proposals(json.dumps({"merges": merges}), SETS)


def merge(number: Any, *members: str, text: str = "Ada has a dog called Rex.") -> dict[str, Any]:
    return {"set": number, "members": list(members), "text": text}


def test_a_proposal_names_members_of_one_set_and_a_text() -> None:
    first, second = proposals(
        merge(1, A, B), merge("2", C, D, text="The rent of 900 euros is due on the 1st.")
    )
    assert (first.set, [m.short_id for m in first.members]) == (0, [A, B])
    assert second.set == 1


@pytest.mark.parametrize(
    "bad",
    [
        merge(1, A), merge(1, A, C), merge(3, A, B), merge(None, A, B), merge(1, A, B, text="Dog."),
        merge(1, A, B, text="x" * 900), merge(2, C, D, text="The rent is 950 euros."),
        {"members": None}, {"set": 1, "members": [A, B], "text": None}, 17,
    ],
)  # fmt: skip
def test_a_proposal_that_breaks_a_rule_is_left_out(bad: Any) -> None:
    assert proposals(bad) == ()


def test_no_memory_is_in_two_proposals() -> None:
    assert len(proposals(merge(1, A, B), merge(1, B, A))) == 1


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([{"merge": 1, "approve": True}, {"merge": 2, "approve": False}], (True, False)),
        ([{"merge": "2", "approve": "yes"}], (False, True)),
        ([{"merge": 1, "approve": True}, {"merge": 1, "approve": False}], (False, False)),
        ([{"merge": 9, "approve": True}, {"approve": True}, "all approved"], (False, False)),
        ([{"merge": 1, "approve": "if in doubt"}, {"merge": 2, "approve": 1}], (False, False)),
        ([], (False, False)),
    ],
)
def test_only_what_was_approved_in_so_many_words_is_approved(
    verdicts: Any, expected: tuple[bool, ...]
) -> None:
    two = proposals(merge(1, A, B), merge(2, C, D, text="The rent of 900 euros is due on the 1st."))
    assert consolidation.parse_verdicts(json.dumps({"verdicts": verdicts}), two) == expected


def test_what_happens_at_two_times_is_not_one() -> None:
    one, other = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)
    assert may_be_one(one, one)
    assert may_be_one(None, one)
    assert not may_be_one(one, other)


# Fading memories.

FADING = tuple(
    Fading(short_id=ref, since="2025-01-01", text="Ada likes tea.", used=0, idle=90)
    for ref in (A, B, C)
)


def test_each_fading_memory_is_archived_kept_with_a_note_or_left() -> None:
    said = [
        {"id": A, "action": "archive", "note": "of no use"},
        {"id": B.upper(), "action": "Salvage", "note": "for her birthday"},
        {"id": C, "action": "salvage", "note": " "},
        {"id": A, "action": "leave"},
        {"id": D, "action": "archive"},
        {"id": B, "action": "delete"},
        {"id": None, "action": "archive"},
        "archive everything",
    ]
    found = floor_review.parse(json.dumps({"reviews": said}), FADING)
    assert [(r.short_id, r.action, r.note) for r in found] == [
        (A, "archive", ""), (B, "salvage", "for her birthday"), (C, "leave", ""),
    ]  # fmt: skip


# Names.


def _entity(number: int, key: str, kind: str = "PERSON", memories: int = 1) -> Candidate:
    return Candidate(id=UUID(int=number), name=key.title(), key=key, type=kind, memories=memories)


NAMES = [
    _entity(1, "anna berger", memories=9), _entity(2, "anna bergar"), _entity(3, "anna"),
    _entity(4, "acme", "ORG"), _entity(5, "acme", "PRODUCT"), _entity(6, "kurt weill"),
]  # fmt: skip


def test_names_that_are_alike_and_of_one_kind_are_grouped() -> None:
    [group] = entity_merge.groups(NAMES)
    assert {one.id.int for one in group} == {1, 2, 3}
    meant = [(UUID(int=1), UUID(int=6)), (UUID(int=4), UUID(int=5))]
    [group] = entity_merge.groups(NAMES, meant)
    assert {one.id.int for one in group} == {1, 2, 3, 6}


def test_a_large_family_of_names_is_asked_about_in_bounded_groups() -> None:
    family = [_entity(n, f"anna maria {'x' * n}", memories=n) for n in range(1, 21)]
    found = entity_merge.groups(family)
    assert found
    assert all(2 <= len(group) <= entity_merge.MOST_MEMBERS for group in found)
    members = [one.id for group in found for one in group]
    assert len(members) == len(set(members))


def test_a_merge_of_names_stays_within_its_group() -> None:
    found = [tuple(NAMES[:3])]

    def parse(*merges: Any) -> list[tuple[int, list[int]]]:
        answer = entity_merge.parse(json.dumps({"merges": merges}), found)
        return [(m.into.int, [o.int for o in m.others]) for m in answer]

    assert parse({"group": 1, "into": 1, "others": [2, "3", 9, 1, None]}) == [(1, [2, 3])]
    assert parse({"into": 2, "others": 1}) == [(2, [1])]
    assert parse({"group": 1, "into": 7, "others": [1, 2]}) == []
    assert parse({"group": 2, "into": 1, "others": [2]}, {"group": 1, "into": 1}, 3) == []
    assert parse(
        {"group": 1, "into": 1, "others": [2]}, {"group": 1, "into": 3, "others": [2]}
    ) == [(1, [2])]


# All of them.

_value = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.text(max_size=8)
    | st.sampled_from([A, B, C, D, "refines", "archive", "true"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["links", "merges", "verdicts", "reviews", "from", "to", "type", "set", "members", "id",
             "merge", "approve", "action", "note", "group", "into", "others", "new", "keep", "text"]
        ), inner, max_size=5,
    ),
    max_leaves=14,
)  # fmt: skip
PARSERS: list[Callable[[str], object]] = [
    lambda text: links_review.parse(text, NEWS),
    lambda text: consolidation.parse_proposals(text, SETS),
    lambda text: consolidation.parse_verdicts(text, proposals(merge(1, A, B))),
    lambda text: floor_review.parse(text, FADING),
    lambda text: entity_merge.parse(text, [tuple(NAMES[:3])]),
]


@given(_value)
def test_no_answer_makes_a_reader_fail_in_another_way_than_malformed(value: Any) -> None:
    for parse in PARSERS:
        try:
            parse(json.dumps(value))
        except ProviderMalformed:
            continue
