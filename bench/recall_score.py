"""What rankings are worth: how much of the evidence is among the first.

R@k is the share of a question's evidence in the first k, all@k whether all of it is, MRR one over
the rank of the first. Means are over questions; the interval is a bootstrap over conversations,
since the questions of one are not independent.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.report import quantile

DEPTHS = (5, 10, 25, 50)
_RESAMPLES = 2000


@dataclass(frozen=True)
class Ranked:
    """The ranking of one question; `group` is its conversation."""

    qid: str
    group: str
    category: str
    evidence: tuple[str, ...]
    ranked: tuple[str, ...]
    ms: float


def measures(rows: Sequence[Ranked]) -> dict[str, Any]:
    """Means over the questions that have evidence; empty if there are none."""
    rows = [row for row in rows if row.evidence]
    if not rows:
        return {}
    found: dict[str, Any] = {"questions": len(rows)}
    for k in DEPTHS:
        found[f"R@{k}"] = _mean([_share(row, k) for row in rows])
    found["all@10"] = _mean([float(_share(row, 10) == 1) for row in rows])
    found["MRR"] = _mean([_reciprocal(row) for row in rows])
    found["R@10 interval"] = interval(rows)
    return found


def interval(rows: Sequence[Ranked], measure: str = "R@10") -> list[float]:
    """The 95 % interval of R@10 (or all@10), by conversation."""
    groups: dict[str, list[float]] = {}
    for row in rows:
        share = _share(row, 10)
        groups.setdefault(row.group, []).append(share if measure == "R@10" else float(share == 1))
    draw, keys = random.Random(7), sorted(groups)
    means = sorted(
        _mean([value for key in draw.choices(keys, k=len(keys)) for value in groups[key]])
        for _ in range(_RESAMPLES)
    )
    return [means[int(_RESAMPLES * 0.025)], means[int(_RESAMPLES * 0.975) - 1]]


def latencies(rows: Sequence[Ranked]) -> dict[str, float]:
    """In milliseconds."""
    took = [row.ms for row in rows]
    return {
        f"p{round(share * 100)}": round(quantile(took, share), 1) for share in (0.5, 0.95, 0.99)
    }


def _share(row: Ranked, k: int) -> float:
    return len(set(row.evidence) & set(row.ranked[:k])) / len(row.evidence)


def _reciprocal(row: Ranked) -> float:
    return next((1 / n for n, one in enumerate(row.ranked, 1) if one in row.evidence), 0.0)


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4)
