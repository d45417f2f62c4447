"""`mira bench engine`: what a message costs, beside a bare loop, asyncio.Queue and Pykka.

In one run, in rounds that take turns, so that a machine that slows down slows all of them. Idle
memory is measured in processes of its own: resident bytes with so many idle actors, less those
without, for each.
"""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import uvloop
from rich.console import Console
from rich.table import Table

from bench.engine_peers import PEERS, Peer
from bench.report import arguments, middle, quantile, write_json

ROUNDS = 5
TELLS = 100_000
ASKS = 10_000
#: Idle actors. A Pykka actor is a thread, so there are fewer of those.
IDLE = (10_000, 100_000)
IDLE_THREADS = (200, 1_000)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; returns the exit code."""
    parser = arguments("engine", __doc__ or "")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument(
        "--quick", action="store_true", help="a trial run, with a fiftieth of the work"
    )
    parser.add_argument("--idle-of", choices=PEERS, help="print the idle bytes of one and end")
    parser.add_argument("--actors", type=int, default=IDLE[0], help="how many, with --idle-of")
    options = parser.parse_args(argv)
    if options.idle_of:
        print(_run(_idle_bytes(PEERS[options.idle_of](), options.actors)))
        return 0

    share = 50 if options.quick else 1
    rounds = [_round(share) for _ in range(options.rounds)]
    results = [_summary(name, [r[name] for r in rounds], share) for name in PEERS]
    console = Console()
    console.print(_table(results))
    if options.json is not None:
        write_json(options.json, results, "uvloop", "anyio", "pykka", rounds=options.rounds)
        console.print(f"Written to {options.json}.")
    return 0


def _round(share: int) -> dict[str, tuple[float, float, float]]:
    """One turn of every peer: tells per second, p50 and p99 of an ask in microseconds."""
    return {name: _run(_measure(make(), share)) for name, make in PEERS.items()}


async def _measure(peer: Peer, share: int) -> tuple[float, float, float]:
    tell_count, ask_count = TELLS // share, ASKS // share
    await peer.open()
    try:
        await peer.asks(ask_count // 10)
        await peer.tells(tell_count // 10)
        gc.collect()
        seconds = await peer.tells(tell_count)
        asks = await peer.asks(ask_count)
    finally:
        await peer.close()
    return tell_count / seconds, quantile(asks, 0.5) * 1e6, quantile(asks, 0.99) * 1e6


async def _idle_bytes(peer: Peer, count: int) -> int:
    await peer.open()
    try:
        await peer.asks(10)
        gc.collect()
        before = _resident()
        await peer.populate(count)
        gc.collect()
        return (_resident() - before) // count
    finally:
        await peer.close()


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _run(measurement: Any) -> Any:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(measurement)


def _summary(name: str, rounds: list[tuple[float, float, float]], share: int) -> dict[str, Any]:
    few, many = (count // share for count in (IDLE_THREADS if name == "pykka" else IDLE))
    tells, p50s, p99s = zip(*rounds, strict=True)
    return {
        "name": name,
        "tell_per_s": round(middle(tells)),
        "ask_us_p50": round(middle(p50s), 2),
        "ask_us_p99": round(middle(p99s), 2),
        "idle_bytes": _idle_in_child(name, many),
        "idle_actors": many,
        "idle_bytes_few": None if share > 1 else _idle_in_child(name, few),
        "idle_actors_few": few,
    }


def _idle_in_child(name: str, count: int) -> int:
    command = [sys.executable, "-m", "bench.engine", "--idle-of", name, "--actors", str(count)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    return int(done.stdout)


def _table(results: list[dict[str, Any]]) -> Table:
    by_name: Mapping[str, dict[str, Any]] = {row["name"]: row for row in results}
    pykka, bare = by_name["pykka"], by_name["bare"]
    table = Table(title="An actor's messages: medians of interleaved rounds, under uvloop")
    for heading in ("", "tell/s", "× Pykka", "ask p50 µs", "× Pykka", "× bare", "ask p99 µs"):
        table.add_column(heading, justify="right" if heading else "left")
    table.add_column("idle bytes (few … many)", justify="right")
    for row in results:
        table.add_row(
            row["name"],
            f"{row['tell_per_s']:,}",
            f"{row['tell_per_s'] / pykka['tell_per_s']:.2f}",
            f"{row['ask_us_p50']:.1f}",
            f"{row['ask_us_p50'] / pykka['ask_us_p50']:.2f}",
            f"{row['ask_us_p50'] / bare['ask_us_p50']:.2f}",
            f"{row['ask_us_p99']:.1f}",
            f"{row['idle_bytes_few'] or '-'} … {row['idle_bytes']}",
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
