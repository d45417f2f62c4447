"""What the figures are held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: What it is about, stage, field, concurrency (-1: any), at most or at least, and the bound.
TARGETS: tuple[tuple[str, str, str, int, str, float], ...] = (
    ("overhead to first text, one client, p50 ms", "first_text", "p50_ms", 1, "<=", 8.0),
    ("overhead to first text, one client, p99 ms", "first_text", "p99_ms", 1, "<=", 25.0),
    ("turns/s at 100, beside the bare script", "rate", "ratio", 100, ">=", 0.6),
    ("open loop at half of that, first text, p50 ms", "open.first_text", "p50_ms", 100, "<=", 25.0),
    ("fan-out, beside hypercorn alone", "fan_out", "ratio", -1, ">=", 0.6),
    ("steady streams: text lag, p99 ms", "pace.lag", "p99_ms", -1, "<=", 250.0),
    ("start to serving, warm, s", "start", "warm_s", -1, "<=", 5.0),
    ("resident, with Postgres and Valkey, MB", "resident", "all_mb", -1, "<=", 1500.0),
)


def judged(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Every target that was measured: what it is, the bound, the figure, hit or miss."""
    found = []
    for name, stage, field, concurrency, relation, bound in TARGETS:
        for row in results:
            if row["stage"] != stage or concurrency not in (-1, row["concurrency"]):
                continue
            figure = row[field]
            if figure is None:
                continue
            hit = figure <= bound if relation == "<=" else figure >= bound
            found.append(
                {"target": name, "bound": f"{relation} {bound:g}", "figure": figure, "hit": hit}
            )
    return found
