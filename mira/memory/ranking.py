"""Ranking of memories: what the lanes found, made one order. Pure.

    relevance = the lanes' min-max scores, weighted by the intent of the search
    score     = (0.75 relevance + 0.25 importance + debut · relevance) · (0.3 if superseded)

A new memory has a debut boost, since it could not earn anything yet; it counts as far as the memory
has to do with what is looked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec
import numpy as np

from mira.memory.bm25 import Floats
from mira.memory.fusion import fuse, min_max, reciprocal_ranks
from mira.memory.query import Intent

Lane = Literal["dense", "lexical", "entity"]

#: How much each lane counts for each intent.
LANE_WEIGHTS: Mapping[Intent, Mapping[str, float]] = {
    "recall": {"dense": 0.3, "lexical": 0.5, "entity": 0.2},
    "explore": {"dense": 0.5, "lexical": 0.25, "entity": 0.25},
    "exact": {"dense": 0.1, "lexical": 0.8, "entity": 0.1},
    "general": {"dense": 0.4, "lexical": 0.4, "entity": 0.2},
}


class Blend(msgspec.Struct, frozen=True, kw_only=True):
    """How relevance and the rest are weighed. `fusion` rrf: reciprocal ranks instead of scores."""

    relevance: float = 0.75
    importance: float = 0.25
    debut: float = 0.15
    #: In use-days: the debut boost is whole up to the first and gone from the second.
    debut_fades: tuple[int, int] = (7, 10)
    superseded: float = 0.3
    fusion: Literal["min_max", "rrf"] = "min_max"


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the candidates, in arrays alike."""

    importance: Floats
    #: Use-days since each was made.
    age: Floats
    #: Whether each was superseded (False throughout where an earlier date is asked for).
    superseded: Floats


class Ranked(msgspec.Struct, frozen=True, kw_only=True):
    """The candidates' scores, and the order: positions, best first."""

    relevance: Floats
    score: Floats
    order: list[int]


def rank(lanes: Mapping[str, Floats], standing: Standing, intent: Intent, blend: Blend) -> Ranked:
    """Rank candidates; a lane has NaN for what it did not find. Ties keep the order given."""
    found = {name: lane for name, lane in lanes.items() if np.isfinite(lane).any()}
    weights = LANE_WEIGHTS[intent]
    if blend.fusion == "rrf":
        relevance = min_max(reciprocal_ranks(found, weights)) if found else _none(standing)
    else:
        relevance = fuse(found, weights) if found else _none(standing)
    score = (
        blend.relevance * relevance
        + blend.importance * standing.importance
        + debut(standing.age, blend) * relevance
    ) * np.where(standing.superseded > 0, blend.superseded, 1.0)
    return Ranked(
        relevance=relevance, score=score, order=np.argsort(-score, kind="stable").tolist()
    )


def debut(age: Floats, blend: Blend) -> Floats:
    """The boost of memories that are so many use-days old."""
    whole, gone = blend.debut_fades
    result: Floats = blend.debut * np.clip((gone - age) / (gone - whole), 0.0, 1.0)
    return result


def _none(standing: Standing) -> Floats:
    return np.zeros(len(standing.importance))
