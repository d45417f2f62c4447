"""Scores of several lanes become one order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mira.memory.bm25 import PostingList, gather, idf, score
from mira.memory.fusion import fuse, min_max, ranks, reciprocal_ranks
from mira.memory.passage_candidates import Words

SCORES = st.lists(st.one_of(st.floats(-1e6, 1e6), st.just(float("nan"))), max_size=20)


@given(SCORES)
def test_what_a_lane_did_not_find_has_nothing(scores: list[float]) -> None:
    lane = np.array(scores)
    stretched = min_max(lane)
    assert ((stretched >= 0) & (stretched <= 1)).all()
    assert (stretched[~np.isfinite(lane)] == 0).all()
    assert sorted(ranks(lane)[np.isfinite(lane)]) == list(
        range(1, int(np.isfinite(lane).sum()) + 1)
    )


@given(SCORES, st.floats(0.1, 10), st.floats(-100, 100))
def test_the_scale_of_a_lane_does_not_matter(scores: list[float], by: float, plus: float) -> None:
    lane = np.round(np.array(scores), 3)
    assert np.allclose(min_max(lane), min_max(lane * by + plus), atol=1e-4)


def test_lanes_count_by_their_weights_alone() -> None:
    lanes = {"words": np.array([1.0, 0.0]), "meaning": np.array([0.0, 1.0])}
    assert fuse(lanes, {"words": 3, "meaning": 1}).tolist() == [0.75, 0.25]
    assert fuse(lanes, {"words": 1}).tolist() == [1.0, 0.0]
    assert reciprocal_ranks(lanes)[0] == pytest.approx(1 / 61 + 1 / 62)


def _list(term: str, docs: list[int], tf: list[int], lengths: list[int]) -> PostingList:
    columns = np.array([docs, tf, lengths], np.int64)
    return PostingList(term, len(docs), *columns)


def test_a_rare_word_weighs_more_and_a_long_text_less() -> None:
    found = gather([_list("rare", [1], [1], [10]), _list("common", [2, 3], [1, 1], [10, 40])])
    weights = idf(100, np.array([1, 60]))
    scores = score(found.tf, found.lengths, 20.0, weights)
    assert found.docs.tolist() == [1, 2, 3]
    assert scores[0] > scores[1] > scores[2] > 0


def test_nothing_asked_finds_nothing() -> None:
    assert len(gather([]).docs) == 0
    assert Words([], 10.0).best({}, 5) == set()


def test_a_neighbour_of_what_was_asked_for_is_a_candidate() -> None:
    found = Words([_list("heron", [7], [1], [5])], 5.0)
    assert found.best({"heron": 2.0}, 3) == {6, 7, 8}
    assert found.best({"stork": 2.0}, 3) == set()
