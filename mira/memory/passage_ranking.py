"""The ranking of passages: features times weights, added up: every place can be explained.

    score     = Σ weight · feature
    relevance = exp(score - score of the best), for each phrase; the best phrase counts

The weights are fitted (bench/recall_fit.py); the file that holds them says on what. The intents
`exact` and `explore` are ranked by the fused lanes alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files

import msgspec
import numpy as np

from mira.memory.bm25 import Floats
from mira.memory.passage_features import BY_MEANING, FEATURES, Featured
from mira.memory.query import Intent

#: How much each lane counts when the pool is chosen.
LANE_WEIGHTS: Mapping[Intent, Mapping[str, float]] = {
    "recall": {"words": 0.2, "words_around": 0.3, "meaning": 0.2, "meaning_around": 0.3},
    "explore": {"words": 0.1, "words_around": 0.2, "meaning": 0.3, "meaning_around": 0.4},
    "exact": {"words": 0.8, "words_around": 0.1, "meaning": 0.1},
    "general": {"words": 0.2, "words_around": 0.3, "meaning": 0.2, "meaning_around": 0.3},
}
#: Intents for which the fitted weights rank the pool.
RERANKED: frozenset[Intent] = frozenset({"recall", "general"})


class Weights(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fitted weights by feature, and where they come from."""

    provenance: Mapping[str, object]
    with_meaning: Mapping[str, float]
    #: For searches without vectors.
    words_alone: Mapping[str, float]


@lru_cache(maxsize=1)
def fitted() -> Weights:
    """The weights that ship."""
    return read_weights((files("mira.memory") / "passage_weights.json").read_bytes())


def read_weights(text: bytes) -> Weights:
    """Weights as written by the fit. Raises ValueError for a feature that is not known."""
    weights = msgspec.json.decode(text, type=Weights)
    known, lexical = set(FEATURES), set(FEATURES) - BY_MEANING
    for given, allowed in ((weights.with_meaning, known), (weights.words_alone, lexical)):
        if strange := set(given) - allowed:
            raise ValueError(f"Weights for features that are not there: {sorted(strange)}.")
    return weights


def scores(found: Featured, weights: Mapping[str, float]) -> Floats:
    """The score of each passage of a pool."""
    total = np.zeros(len(found.at))
    for name, weight in weights.items():
        total += weight * found.features[name]
    return total


def contributions(found: Featured, at: int, weights: Mapping[str, float]) -> dict[str, float]:
    """What each feature added to the score of one passage, without those that added nothing; the
    most decisive first."""
    parts = {name: weight * float(found.features[name][at]) for name, weight in weights.items()}
    return dict(
        sorted(
            ((name, part) for name, part in parts.items() if abs(part) > 1e-9),
            key=lambda item: -abs(item[1]),
        )
    )


def relevance(score: Floats) -> Floats:
    """Scores as shares of the best: 1 for the best, towards 0."""
    result: Floats = np.exp(score - score.max()) if len(score) else score
    return result


def best_of(parts: Sequence[Floats]) -> tuple[Floats, Floats]:
    """For each document the best of several phrases' relevances (0 where it is in none), and which
    phrase that was."""
    stacked = np.stack(parts)
    return stacked.max(axis=0), stacked.argmax(axis=0).astype(np.float64)
