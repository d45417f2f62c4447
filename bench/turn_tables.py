"""The results on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from bench.mind_tables import mind_tables
from bench.turn_figures import Row, ms
from bench.turn_targets import judged

#: Stages as a reader knows them, in order.
_STAGES = {
    "accepted": "send → accepted",
    "first_text": "send → first text",
    "complete": "send → complete",
    "server.started": "  server: started",
    "server.recalled": "  server: recalled",
    "server.composed": "  server: composed",
    "server.first_text": "  server: first text, provider included",
    "server.streamed": "  server: streamed, provider included",
    "server.committed": "  server: committed, provider included",
    "floor.first_text": "bare script → first text",
    "floor.complete": "bare script → complete",
    "open.accepted": "open loop: send → accepted",
    "open.first_text": "open loop: send → first text",
    "open.complete": "open loop: send → complete",
    "long.accepted": "full prompt: send → accepted",
    "long.first_text": "full prompt: send → first text",
    "long.complete": "full prompt: send → complete",
    "pace.lag": "steady streams: lag of text",
}


def tables(results: Sequence[Row]) -> list[Table]:
    """Latencies, rates, and the targets."""
    found = (_latencies(results), _rates(results), *mind_tables(results), _targets(results))
    return [t for t in found if t.row_count]


def _latencies(results: Sequence[Row]) -> Table:
    table = Table(title="Milliseconds, the provider's own time taken out")
    table.add_column("at once", justify="right")
    table.add_column("stage")
    for name in ("p50", "p95", "p99", "turns", "errors"):
        table.add_column(name, justify="right")
    last = None
    for row in results:
        if row["stage"] not in _STAGES:
            continue
        if last not in (None, row["concurrency"]):
            table.add_section()
        last = row["concurrency"]
        table.add_row(
            str(row["concurrency"]),
            _STAGES[row["stage"]],
            *(ms(row[f"p{n}_ms"]) for n in (50, 95, 99)),
            str(row["turns"]),
            str(row["errors"]),
        )
    return table


def _rates(results: Sequence[Row]) -> Table:
    table = Table(title="Turns a second, in the same rounds")
    for name in ("at once", "MIRA", "bare script", "ratio"):
        table.add_column(name, justify="right")
    table.add_column("processor ms a turn")
    for row in results:
        if row["stage"] == "rate":
            spent = ", ".join(
                f"{who.replace('_', ' ')} {ms:.1f}" for who, ms in row["cpu_ms_per_turn"].items()
            )
            table.add_row(
                str(row["concurrency"]), f"{row['turns_per_s']:.0f}",
                f"{row['floor_turns_per_s']:.0f}", f"{row['ratio']:.2f}", spent,
            )  # fmt: skip
    return table


def _targets(results: Sequence[Row]) -> Table:
    table = Table(title="Targets")
    table.add_column("what")
    for name in ("target", "measured", ""):
        table.add_column(name, justify="right")
    for found in judged(results):
        told = "[green]hit[/green]" if found["hit"] else "[red]miss[/red]"
        table.add_row(found["target"], found["bound"], f"{found['figure']:g}", told)
    return table
