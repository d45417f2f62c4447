"""What speaks for a passage: the features that it is ranked by. Pure.

Every feature lies between 0 and 1 and is relative to the other candidates of the same search (or
is a yes or no), so that it means the same for a short chat and for long letters, for a hundred
messages and for a hundred thousand. FEATURES says what each one means.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from math import exp

import msgspec
import numpy as np
from numpy.typing import NDArray

from mira.memory.asked import Asked, days_apart, in_month
from mira.memory.bm25 import Floats, Ints, score
from mira.memory.fusion import fuse, min_max, ranks
from mira.messages.content import Role

Bools = NDArray[np.bool_]
Matrix = NDArray[np.float32]

#: Lanes, each a score per candidate: BM25 and cosine, of the message and of it with its neighbours.
LANES = ("words", "words_around", "meaning", "meaning_around")

FEATURES: Mapping[str, str] = {
    "words": "its words are those asked for (BM25, as a share of the best)",
    "meaning": "it means what is asked for (cosine of its best part, from the worst to the best)",
    "words_around_first": "it is among the first by words with its neighbours",
    "meaning_first": "it is among the first by meaning",
    "meaning_around_first": "it is among the first by meaning with its neighbours",
    "before": "what was said just before is likely",
    "before_that": "what was said two messages before is likely",
    "beside": "one of its neighbours is likely",
    "segment": "its part of the conversation holds likely passages (its best three)",
    "like_likely": "it and its neighbours mean what is asked for and what the likeliest five say",
    "covered": "it has the terms asked for, weighed by rarity",
    "covered_around": "it and its neighbours have them",
    "speaker": "who is named in the question said it",
    "own": "the user said it, and the question is about who asks",
    "long": "it is one of the longer candidates",
    "asks": "it asks something itself",
    "answers": "what was said just before asks something",
    "is_answered": "what was said just after asks something",
    "in_month": "it was said in the month asked about",
    "near_day": "it was said about the day asked about",
    "says_when": "it says when something was, and that is asked",
    "says_how_many": "it holds a number, and that is asked",
}

#: Features that need vectors.
BY_MEANING = frozenset({"meaning", "meaning_first", "meaning_around_first", "like_likely"})

#: Softens the first ranks: the first has 1, the eleventh about a half.
_FIRST = 10
#: In days: how far from a date that is asked about still counts.
_AROUND_DAY = 5.0


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the documents around a search; arrays alike, documents rising."""

    docs: Ints
    #: The candidates; the others are there as neighbours alone.
    candidate: Bools
    segment: Ints
    by_user: Bools
    length: Ints
    asks: Bools
    timed: Bools
    counted: Bools
    #: Local dates as ordinals.
    day: Ints
    #: Term × document, how much each term weighs, and the mean length of all the user's messages.
    terms: tuple[str, ...]
    tf: Floats
    idf: Floats
    average: float
    #: Vectors of the parts of messages with the position of their document, and of each document
    #: with its neighbours (zeros where there is none).
    parts: Matrix
    part_of: Ints
    windows: Matrix


class Featured(msgspec.Struct, frozen=True, kw_only=True):
    """The pool that is ranked: positions in Facts, best first by plain fusion, with what speaks
    for each, and the lanes' raw scores (NaN: the lane did not find it)."""

    at: Ints
    fused: Floats
    features: dict[str, Floats]
    lanes: dict[str, Floats]


def featured(
    asked: Asked, vector: Matrix | None, facts: Facts, weights: Mapping[str, float], size: int
) -> Featured:
    """The best `size` candidates by plain fusion with `weights`, and their features.

    Without a vector those of BY_MEANING are 0.
    """
    before, after = _neighbours(facts)
    lanes = _lanes(asked, vector, facts, before, after)
    candidates = np.flatnonzero(facts.candidate)
    raw = {name: lane[candidates] for name, lane in lanes.items()}
    fused = fuse(raw, weights)
    order = np.argsort(-fused, kind="stable")[:size]
    at = candidates[order]
    raw = {name: lane[order] for name, lane in raw.items()}
    likely = min_max(fused[order])
    features = {
        f"{name}_first": (_FIRST + 1) / (_FIRST + ranks(lane)) for name, lane in raw.items()
    }
    words = np.nan_to_num(raw["words"])
    features["words"] = words / max(float(words.max(initial=0)), 1e-9)
    if "meaning" in raw:
        features["meaning"] = min_max(raw["meaning"])
    features |= _around(likely, at, facts, before, after)
    if vector is not None:
        features |= _like_likely(likely, at, facts, vector)
    features |= _coverage(asked, at, facts, before, after)
    features |= _circumstances(asked, at, facts, before, after)
    empty = np.zeros(len(at))
    return Featured(
        at=at, fused=fused[order], lanes=raw,
        features={name: features.get(name, empty) for name in FEATURES},
    )  # fmt: skip


def _neighbours(facts: Facts) -> tuple[Ints, Ints]:
    """For each document the positions of the one before and the one after it in its segment, or
    -1."""
    count = len(facts.docs)
    here = np.arange(count)
    follows = np.zeros(count, bool)
    follows[1:] = (np.diff(facts.docs) == 1) & (np.diff(facts.segment) == 0)
    before = np.where(follows, here - 1, -1)
    after = np.full(count, -1)
    after[:-1] = np.where(follows[1:], here[1:], -1)
    return before, after


def _there(values: Floats | Bools, at: Ints) -> Floats:
    """Values at positions, 0 where there is none (-1)."""
    if not len(values):
        return np.zeros(len(at))
    return np.where(at >= 0, values[np.maximum(at, 0)], 0).astype(np.float64)


def _joined(values: Floats, before: Ints, after: Ints) -> Floats:
    """Values (… × document) summed with those of the neighbours."""
    padded = np.concatenate([values, np.zeros((*values.shape[:-1], 1))], axis=-1)
    result: Floats = values + padded[..., before] + padded[..., after]
    return result


def _lanes(
    asked: Asked, vector: Matrix | None, facts: Facts, before: Ints, after: Ints
) -> dict[str, Floats]:
    weights = np.where(np.isin(facts.terms, asked.terms), facts.idf, 0.0)
    around = _joined(facts.tf, before, after)
    length = facts.length.astype(np.float64)
    length_around = _joined(length, before, after)
    words = score(facts.tf, length, facts.average, weights)
    # The mean of three messages' length: what one and its neighbours have.
    words_around = score(around, length_around, 3 * facts.average, weights)
    lanes = {
        "words": np.where(words > 0, words, np.nan),
        "words_around": np.where(words_around > 0, words_around, np.nan),
    }
    if vector is not None:
        meaning = np.full(len(facts.docs), -np.inf)
        np.maximum.at(meaning, facts.part_of, facts.parts @ vector)
        lanes["meaning"] = np.where(np.isfinite(meaning), meaning, np.nan)
        known = np.any(facts.windows != 0, axis=1)
        lanes["meaning_around"] = np.where(known, facts.windows @ vector, np.nan)
    return lanes


def _around(likely: Floats, at: Ints, facts: Facts, before: Ints, after: Ints) -> dict[str, Floats]:
    everywhere = np.zeros(len(facts.docs))
    everywhere[at] = likely
    one, two = before[at], np.where(before[at] >= 0, before[np.maximum(before[at], 0)], -1)
    said_before, said_after = _there(everywhere, one), _there(everywhere, after[at])
    segments, of = np.unique(facts.segment[at], return_inverse=True)
    best = _best_three(likely, of, len(segments))
    return {
        "before": said_before,
        "before_that": _there(everywhere, two),
        "beside": np.maximum(said_before, said_after),
        "segment": min_max(best[of]) if len(best) else np.zeros(0),
    }


def _best_three(values: Floats, of: Ints, groups: int) -> Floats:
    """For each group the sum of its three highest values, divided by three."""
    order = np.lexsort((-values, of))
    sizes = np.bincount(of, minlength=groups)
    place = np.arange(len(of)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    first = order[place < 3]
    result: Floats = np.bincount(of[first], values[first], groups) / 3
    return result


def _like_likely(likely: Floats, at: Ints, facts: Facts, vector: Matrix) -> dict[str, Floats]:
    """Relevance feedback by meaning: what is asked for, moved towards what was found first."""
    position = np.full(len(facts.docs), -1)
    position[at] = np.arange(len(at))
    part_at = position[facts.part_of]
    parts, part_at = facts.parts[part_at >= 0], part_at[part_at >= 0]
    if not len(parts):
        return {}
    # A message of several parts stands for itself by the one nearest to the question.
    nearest = np.lexsort((-(parts @ vector), part_at))
    first = nearest[np.unique(part_at[nearest], return_index=True)[1]]
    whole = np.zeros((len(at), parts.shape[1]), np.float32)
    whole[part_at[first]] = parts[first]
    moved = _direction(np.stack([vector, vector, _direction(whole[:5])]))
    return {"like_likely": min_max((facts.windows[at] @ moved).astype(np.float64))}


def _direction(vectors: Matrix) -> Matrix:
    mean = vectors.mean(axis=0)
    result: Matrix = mean / max(float(np.linalg.norm(mean)), 1e-9)
    return result


def _coverage(asked: Asked, at: Ints, facts: Facts, before: Ints, after: Ints) -> dict[str, Floats]:
    weights = np.where(np.isin(facts.terms, asked.terms), facts.idf, 0.0)
    if not weights.any():
        return {}
    has = (facts.tf > 0).astype(np.float64)
    near = (_joined(facts.tf, before, after) > 0)[:, at].astype(np.float64)
    has = has[:, at]
    return {
        "covered": weights @ has / weights.sum(),
        "covered_around": weights @ near / weights.sum(),
    }


def _circumstances(
    asked: Asked, at: Ints, facts: Facts, before: Ints, after: Ints
) -> dict[str, Floats]:
    by_user = facts.by_user[at]
    speaker = np.zeros(len(at))
    if asked.speaker is not None:
        speaker = (by_user == (asked.speaker is Role.USER)).astype(np.float64)
    result = {
        "speaker": speaker,
        "own": (by_user & asked.own).astype(np.float64),
        "long": _percentile(facts.length[at]),
        "asks": facts.asks[at].astype(np.float64),
        "answers": _there(facts.asks, before[at]),
        "is_answered": _there(facts.asks, after[at]),
        "says_when": (facts.timed[at] & asked.wants_time).astype(np.float64),
        "says_how_many": (facts.counted[at] & asked.wants_number).astype(np.float64),
    }
    if asked.date is not None:
        days = [date.fromordinal(int(day)) for day in facts.day[at]]
        said = asked.date
        result["in_month"] = np.array([in_month(said, day) for day in days], float)
        apart = [days_apart(said, day) for day in days]
        result["near_day"] = np.array(
            [0.0 if days is None else exp(-days / _AROUND_DAY) for days in apart]
        )
    return result


def _percentile(values: Ints) -> Floats:
    if len(values) < 2:
        return np.zeros(len(values))
    sorted_values = np.sort(values)
    return np.searchsorted(sorted_values, values, side="left") / (len(values) - 1)
