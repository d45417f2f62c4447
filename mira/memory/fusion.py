"""Several lanes' scores of the same candidates made one.

A lane is an array with one score per candidate, NaN where the lane did not find it. Fused scores
are finite, higher is better, and depend on the lanes' weights relative to each other alone.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mira.memory.bm25 import Floats

#: Dampens the first ranks in reciprocal rank fusion.
RRF_K = 60


def min_max(scores: Floats) -> Floats:
    """Scores stretched to 0…1 within the lane. What it did not find has 0, as its worst has; where
    all that it found score alike, they have 1."""
    found = np.isfinite(scores)
    result = np.zeros(len(scores))
    if found.any():
        low, high = scores[found].min(), scores[found].max()
        result[found] = (scores[found] - low) / (high - low) if high > low else 1.0
    return result


def ranks(scores: Floats) -> Floats:
    """Rank of each candidate in the lane, from 1; infinite for what it did not find. Equals rank
    in the order in which they stand."""
    found = np.isfinite(scores)
    order = np.argsort(-np.where(found, scores, -np.inf), kind="stable")
    result = np.empty(len(scores))
    result[order] = np.arange(1, len(scores) + 1)
    return np.where(found, result, np.inf)


def fuse(lanes: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    """Weighted mean of the lanes' min-max scores, 0…1. A lane without a weight counts nothing."""
    total = sum(weights.get(name, 0.0) for name in lanes) or 1.0
    parts = [weights.get(name, 0.0) / total * min_max(lane) for name, lane in lanes.items()]
    return np.sum(parts, axis=0) if parts else np.zeros(0)


def reciprocal_ranks(
    lanes: Mapping[str, Floats], weights: Mapping[str, float] | None = None, k: int = RRF_K
) -> Floats:
    """Reciprocal rank fusion; every lane weighs 1 unless `weights` says otherwise."""
    parts = [
        (1.0 if weights is None else weights.get(name, 0.0)) / (k + ranks(lane))
        for name, lane in lanes.items()
    ]
    return np.sum(parts, axis=0) if parts else np.zeros(0)
