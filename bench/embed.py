"""`mira bench embed`: what vectors and names cost, and what they cost everybody else.

The real models in this process, under uvloop, on texts made of words of the project's documents,
none of them twice. Whatever is compared is measured in slices that take turns (idle, busy, idle,
busy, …), so that a machine that slows down slows both. The floor is the bare model: one thread
that encodes the same texts in batches of one size and does nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uvloop
from rich.console import Console
from rich.table import Table

from bench.embed_measures import Bench, Row, opened
from bench.report import arguments, write_json

#: How much longer the event loop may be late, at the 99th percentile, than in idle slices, in ms.
TARGET_MS = 5.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; returns the exit code: 0, whatever the figures are."""
    parser = arguments("embed", (__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=8, help="slices of each kind (8)")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each slice (2)")
    parser.add_argument("--threads", type=int, default=2, help="of the pool (2)")
    parser.add_argument(
        "--models", type=Path, default=Path(".cache/bench/models"), metavar="DIR",
        help="where the model's graph is kept (.cache/bench/models)",
    )  # fmt: skip
    options = parser.parse_args(argv)
    options.models.mkdir(parents=True, exist_ok=True)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        results = runner.run(
            _measured(options.models, options.threads, options.rounds, options.seconds)
        )
    console = Console()
    console.print(*_tables(results), sep="\n")
    if options.json is not None:
        write_json(
            options.json, results, "onnxruntime", "tokenizers", "spacy", "numpy", "uvloop",
            rounds=options.rounds, seconds=options.seconds, threads=options.threads,
            targets=targets(results),
        )  # fmt: skip
        console.print(f"Written to {options.json}.")
    return 0


async def _measured(models: Path, threads: int, rounds: int, seconds: float) -> list[Row]:
    async with opened(models, threads) as house:
        bench = Bench(house, rounds, seconds)
        return [*await bench.queries(), *await bench.lag(), *await bench.throughput()]


def targets(results: Sequence[Row]) -> list[dict[str, Any]]:
    """The event loop's lag under load, held against its lag in the idle slices between."""
    lag = {row["load"]: row for row in results if row["what"] == "lag"}
    return [
        {
            "what": f"event loop, p99 while {load}: at most {TARGET_MS:g} ms later than idle",
            "ms": round(lag[load]["p99_ms"] - lag["idle"]["p99_ms"], 2),
            "hit": lag[load]["p99_ms"] - lag["idle"]["p99_ms"] <= TARGET_MS,
        }
        for load in lag
        if load != "idle"
    ]


def _tables(results: Sequence[Row]) -> list[Table]:
    times = Table(title="Milliseconds; slices that take turns")
    times.add_column("")
    times.add_column("while")
    for heading in ("p50", "p95", "p99", "max", "measured"):
        times.add_column(heading, justify="right")
    for row in results:
        if "p50_ms" in row:
            figures = (f"{row[f'{name}_ms']:.2f}" for name in ("p50", "p95", "p99", "max"))
            times.add_row(row["what"], row["load"], *figures, f"{row['count']:,}")
    rates = Table(title="Texts a second")
    rates.add_column("")
    for heading in ("callers or batch", "short (16 words)", "long (150 words)"):
        rates.add_column(heading, justify="right")
    for row in results:
        if row["what"] in ("embedder", "bare model"):
            rates.add_row(
                row["what"], str(row["size"]), f"{row['short']:.0f}", f"{row['long']:.1f}"
            )
    judged = Table(title="Targets")
    for heading in ("", "ms", ""):
        judged.add_column(heading)
    for target in targets(results):
        judged.add_row(target["what"], f"{target['ms']:.2f}", "hit" if target["hit"] else "MISSED")
    return [times, rates, judged]


if __name__ == "__main__":
    raise SystemExit(main())
