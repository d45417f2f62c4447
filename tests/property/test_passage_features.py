"""What the ranking of passages goes by, for arbitrary histories."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mira.memory.asked import read
from mira.memory.passage_features import BY_MEANING, FEATURES, Facts, featured
from mira.memory.passage_ranking import LANE_WEIGHTS, contributions, fitted, scores

WEIGHTS = LANE_WEIGHTS["recall"]


@st.composite
def pools(draw: st.DrawFn) -> tuple[Facts, Any]:
    count = draw(st.integers(1, 12))
    terms = ("heron", "river", "trout")
    gaps = draw(st.lists(st.integers(1, 2), min_size=count, max_size=count))
    docs = np.cumsum(gaps)
    whole = st.integers(0, 2**31 - 1).map(np.random.default_rng)
    rng = draw(whole)
    parts = rng.normal(size=(2 * count, 4)).astype(np.float32)
    parts /= np.linalg.norm(parts, axis=1, keepdims=True)
    candidate = rng.random(count) < 0.7
    candidate[draw(st.integers(0, count - 1))] = True
    tf = draw(arrays.arrays(np.float64, (3, count), elements=st.integers(0, 4).map(float)))
    facts = Facts(
        docs=docs, candidate=candidate, segment=np.cumsum(np.array(gaps) > 1),
        by_user=rng.random(count) < 0.5, length=rng.integers(1, 400, count),
        asks=rng.random(count) < 0.3, timed=rng.random(count) < 0.3,
        counted=rng.random(count) < 0.3, day=rng.integers(738000, 739000, count), terms=terms,
        tf=tf, idf=np.array([2.0, 1.0, 0.0]), average=20.0, parts=parts,
        part_of=np.repeat(np.arange(count), 2), windows=parts[::2].copy(),
    )  # fmt: skip
    return facts, parts[draw(st.integers(0, 2 * count - 1))]


QUESTIONS = st.sampled_from(
    ["When did Ada see the heron?", "How many trout did I catch on 3 May?", "zzz", "river heron"]
)


@given(pools(), QUESTIONS)
def test_features_lie_between_nothing_and_all(pool: tuple[Facts, Any], question: str) -> None:
    facts, vector = pool
    found = featured(read(question, "Ada", "Ben"), vector, facts, WEIGHTS, 10)
    assert list(found.features) == list(FEATURES)
    assert facts.candidate[found.at].all()
    assert len(set(found.at.tolist())) == len(found.at) == min(10, facts.candidate.sum())
    for name, values in found.features.items():
        assert np.isfinite(values).all(), name
        assert (values >= -1e-9).all(), name
        assert (values <= 1 + 1e-6).all(), name


@given(pools(), QUESTIONS)
def test_without_a_vector_no_feature_speaks_of_meaning(
    pool: tuple[Facts, Any], question: str
) -> None:
    found = featured(read(question, "Ada", "Ben"), None, pool[0], WEIGHTS, 10)
    assert not any(found.features[name].any() for name in BY_MEANING)
    assert set(found.lanes) == {"words", "words_around"}


@given(pools(), QUESTIONS)
def test_what_the_numbers_are_called_does_not_matter(
    pool: tuple[Facts, Any], question: str
) -> None:
    facts, vector = pool
    moved = msgspec.structs.replace(facts, docs=facts.docs + 1000, segment=facts.segment + 7)
    asked = read(question, "Ada", "Ben")
    one = featured(asked, vector, facts, WEIGHTS, 10)
    two = featured(asked, vector, moved, WEIGHTS, 10)
    assert np.array_equal(one.at, two.at)
    assert all(np.allclose(one.features[name], two.features[name]) for name in FEATURES)


@given(pools(), QUESTIONS)
def test_contributions_add_up_to_the_score(pool: tuple[Facts, Any], question: str) -> None:
    facts, vector = pool
    weights = fitted().with_meaning
    found = featured(read(question, "Ada", "Ben"), vector, facts, WEIGHTS, 10)
    total = scores(found, weights)
    for at in range(len(found.at)):
        assert abs(sum(contributions(found, at, weights).values()) - total[at]) < 1e-6


@given(pools())
def test_a_neighbour_in_another_segment_is_no_neighbour(pool: tuple[Facts, Any]) -> None:
    facts, vector = pool
    alone = msgspec.structs.replace(facts, docs=facts.docs * 2)
    found = featured(read("heron", "Ada", "Ben"), vector, alone, WEIGHTS, 10)
    for name in ("before", "before_that", "beside", "answers"):
        assert not found.features[name].any()
