"""`mira bench memory`: how fast many memories are written, found and scored.

A Postgres of its own is started in a temporary home, with the schema and settings of the server,
and filled with invented memories (bench.memory_data); the embedding model is the real one. Searches
are those of the product: Memories.search, in which nothing is left out.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from time import perf_counter
from uuid import UUID

import numpy as np
import uvloop
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench.memory_data import DOINGS, Writer
from bench.memory_fill import fill
from bench.memory_house import House, house
from bench.memory_measure import Row, recall, rescoring, searches, sizes, writes
from bench.priority import real_time
from bench.report import arguments, write_json
from mira.memory.embedding import Vectors

#: Users that are searched, at most: spread over all of them.
ASKED = 20


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; returns the exit code: 0, whatever the figures are."""
    parser = arguments("memory", (__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--rows", type=int, default=6000, help="memories in all (6000)")
    parser.add_argument("--users", type=int, default=1, help="whose they are (1)")
    parser.add_argument("--searches", type=int, default=200, help="in all, at least (200)")
    parser.add_argument("--writes", type=int, default=100, help="new memories (100)")
    parser.add_argument("--quick", action="store_true", help="a trial run, with few sentences")
    parser.add_argument(
        "--real-time",
        action="store_true",
        help="measure with real-time priority (as root, on a machine that others use too)",
    )
    options = parser.parse_args(argv)
    if not 1 <= options.users <= options.rows:
        parser.error("there must be a user, and a memory for each")
    console = Console()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        results = runner.run(_measured(options, console))
    console.print(_table(options, results))
    if options.json is not None:
        write_json(
            options.json, results, "asyncpg", "onnxruntime", "numpy",
            rows=options.rows, users=options.users,
        )  # fmt: skip
        console.print(f"Written to {options.json}.")
    return 0


async def _measured(options: argparse.Namespace, console: Console) -> list[Row]:
    async with house() as ready:
        writer = await _writer(ready, 1 if options.quick else len(DOINGS))
        begun = perf_counter()
        with _progress(console) as progress:
            task = progress.add_task("Filling", total=options.rows)
            made = await fill(
                ready.owner, writer, ready.embedder.model, options.rows, options.users,
                lambda count: progress.advance(task, count),
            )  # fmt: skip
        results: list[Row] = [{"what": "filling", "seconds": round(perf_counter() - begun, 1)}]
        spread = np.linspace(0, len(made) - 1, min(ASKED, len(made))).astype(int).tolist()
        users = [(at, made[at]) for at in spread]
        priority = real_time(await ready.backends()) if options.real_time else nullcontext()
        with priority:
            console.print("Searching")
            results += await _asked(ready, writer, users, options)
            console.print("Scoring, writing")
            results += await rescoring(ready, made[0])
            results.append(await writes(ready, made[0], options.writes))
        results += await sizes(ready)
    return results


async def _asked(
    ready: House, writer: Writer, users: Sequence[tuple[int, UUID]], options: argparse.Namespace
) -> list[Row]:
    each = max(1, options.searches // len(users))
    fewer = users[:: max(1, len(users) // 5)]
    count = options.rows // options.users
    return [
        *await searches(ready, writer, users, each),
        await recall(ready, writer, fewer, count, max(1, 50 // len(fewer))),
    ]


async def _writer(ready: House, doings: int = len(DOINGS)) -> Writer:
    """Its sentences are encoded by the real model, before anything is measured."""
    made: list[Vectors] = []

    def encode(texts: Sequence[str]) -> Vectors:
        if not made:
            sentences.extend(texts)
            return np.zeros((len(texts), 384), np.float32)
        return made[0]

    sentences: list[str] = []
    Writer(encode, doings=doings)
    made.append(await ready.embedder.texts(sentences))
    return Writer(encode, doings=doings)


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=console,
    )  # fmt: skip


def _table(options: argparse.Namespace, results: Sequence[Row]) -> Table:
    table = Table(title=f"{options.rows:,} memories of {options.users:,} users")
    table.add_column("what")
    table.add_column("figures")
    for row in results:
        rest = "  ".join(f"{name} {value}" for name, value in row.items() if name != "what")
        table.add_row(str(row["what"]), rest)
    return table


if __name__ == "__main__":
    raise SystemExit(main())
