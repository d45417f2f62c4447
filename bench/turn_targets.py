"""What the figures are held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: What it is about, stage, field, concurrency (-1: any; of `mind.ratio` the number of memories), at
#: most or at least, and the bound.
TARGETS: tuple[tuple[str, str, str, int, str, float], ...] = (
    ("overhead to first text, one client, p50 ms", "first_text", "p50_ms", 1, "<=", 8.0),
    ("overhead to first text, one client, p99 ms", "first_text", "p99_ms", 1, "<=", 25.0),
    ("turns/s at 100, beside the bare script", "rate", "ratio", 100, ">=", 0.6),
    ("open loop at half of that, first text, p50 ms", "open.first_text", "p50_ms", 100, "<=", 25.0),
    ("fan-out, beside hypercorn alone", "fan_out", "ratio", -1, ">=", 0.6),
    ("steady streams: text lag, p99 ms", "pace.lag", "p99_ms", -1, "<=", 250.0),
    ("start to serving, warm, s", "start", "warm_s", -1, "<=", 5.0),
    (
        "recall in 10,000 memories, first text beside script, p50",
        "mind.ratio",
        "p50_ratio",
        10000,
        "<=",
        1.4,
    ),
    ("the same, p99 beside the script's p50", "mind.ratio", "p99_ratio", 10000, "<=", 4.0),
    ("50 that recall, turns/s beside the script", "mind.rate", "ratio", 50, ">=", 0.6),
    (
        "longest history beside the shortest, first text p50",
        "mind.history",
        "p50_ratio",
        -1,
        "<=",
        1.2,
    ),
    ("a slow Subcortex costs at most its deadline, ms", "mind.delay", "cost_ms", -1, "<=", 1500.0),
    ("resident, with Postgres and Valkey, MB", "resident", "all_mb", -1, "<=", 1500.0),
)


def judged(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Every target that was measured: what it is, the bound, the figure, hit or miss."""
    found = []
    for name, stage, field, concurrency, relation, bound in TARGETS:
        for row in results:
            if row["stage"] != stage:
                continue
            which = row["memories"] if stage == "mind.ratio" else row["concurrency"]
            if concurrency not in (-1, which):
                continue
            figure = row[field]
            if figure is None:
                continue
            hit = figure <= bound if relation == "<=" else figure >= bound
            found.append(
                {"target": name, "bound": f"{relation} {bound:g}", "figure": figure, "hit": hit}
            )
    return found
