"""From turns to figures: stages, percentiles, and the provider's own time taken out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.report import quantile
from bench.turn_load import Turn

Row = dict[str, Any]

_SHARES = (50, 95, 99)

#: What a client sees, from the moment at which the turn was due.
CLIENT_STAGES = ("accepted", "first_text", "complete")
#: What the server itself says of a turn (see Timings); from the acceptance, provider included.
SERVER_STAGES = ("started", "recalled", "composed", "first_text", "streamed", "committed")


def provider_time(stamp: Mapping[str, Any], stage: str) -> float:
    """Seconds of a stage that were the provider's: from request to first piece, or to the end."""
    if stage == "accepted":
        return 0.0
    until: float = stamp["first_byte"] if stage == "first_text" else stamp["done"]
    return until - float(stamp["received"])


def overheads(
    turns: Iterable[Turn], stamps: Mapping[str, Mapping[str, Any]]
) -> dict[str, list[float]]:
    """For each stage of the client, the milliseconds that were ours, of every complete turn."""
    found: dict[str, list[float]] = {stage: [] for stage in CLIENT_STAGES}
    for turn in turns:
        if turn.outcome != "complete":
            continue
        stamp = stamps[turn.marker]
        for stage, at in zip(
            CLIENT_STAGES, (turn.accepted, turn.first_text, turn.ended), strict=True
        ):
            found[stage].append((at - turn.due - provider_time(stamp, stage)) * 1000)
    return found


def server_stages(turns: Iterable[Turn]) -> dict[str, list[float]]:
    """For each stage of the server, its milliseconds in every complete turn."""
    complete = [turn for turn in turns if turn.outcome == "complete"]
    return {stage: [t.timings[f"{stage}_ms"] or 0.0 for t in complete] for stage in SERVER_STAGES}


def floor_overheads(
    turns: Iterable[Sequence[Any]], stamps: Mapping[str, Mapping[str, Any]]
) -> dict[str, list[float]]:
    """The same of the bare script's turns: [marker, began, first_text, ended, outcome]."""
    found: dict[str, list[float]] = {"first_text": [], "complete": []}
    for marker, began, first_text, ended, outcome in turns:
        if outcome == "complete":
            for stage, at in (("first_text", first_text), ("complete", ended)):
                found[stage].append((at - began - provider_time(stamps[marker], stage)) * 1000)
    return found


def per_second(ends: Sequence[float], begins: Sequence[float]) -> float:
    """Turns a second over the middle of a run: its first fifth, in which everything begins at
    once, and what ended after the last turn began are left out. Where most turns took longer than
    that, over the whole run."""
    if not ends:
        return 0.0
    start, stop = min(begins), max(begins)
    start += (stop - start) / 5
    counted = sum(start <= end <= stop for end in ends)
    if counted < len(ends) / 3:
        start, stop, counted = min(begins), max(ends), len(ends)
    return counted / (stop - start) if stop > start else 0.0


def row(concurrency: int, stage: str, values: Sequence[float], errors: int, **more: Any) -> Row:
    """One row of the results."""
    return {
        "concurrency": concurrency,
        "stage": stage,
        **{f"p{n}_ms": round(quantile(values, n / 100), 3) if values else None for n in _SHARES},
        "errors": errors,
        "turns": len(values),
        **more,
    }


def ms(value: float | None) -> str:
    """Milliseconds as a table shows them."""
    return "–" if value is None else f"{value:.1f}"
