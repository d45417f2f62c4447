"""`mira bench turn`: what a turn costs on the real server, beside a bare script.

The server runs as a process of its own on the Postgres and the Valkey that it starts itself, in a
temporary home; the model is the provider double (bench.provider_double), a further process; the
clients are WebSockets in this one. Every figure is an overhead: the provider's own time is taken
out. In every round the bare script (bench.turn_floor) does the same work on the same database:
one call of the official SDK and one commit for each turn, and nothing else.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.mind import Part
from bench.report import arguments, write_json
from bench.turn_figures import Row, row
from bench.turn_house import House, Loops
from bench.turn_tables import tables
from bench.turn_targets import judged
from mira import telemetry

CONCURRENCY = "1,10,100,1000"
PARTS = ("start", "closed", "open", "long", "fan_out", "pace", "resident")
#: Further parts, which are measured only if they are asked for.
MORE_PARTS = ("mind",)
#: The closed loop at this concurrency gives the rate of the open loop.
OPEN_FROM = 100


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; returns the exit code: 0, whatever the figures are."""
    options = _options(argv)
    telemetry.configure("warning")
    console = Console()
    with House(options.provider) as house:
        results = _measured(house, options, console)
    console.print(*tables(results), sep="\n")
    if options.json is not None:
        write_json(
            options.json, results, "anthropic", "openai", "asyncpg", "hypercorn", "uvloop",
            provider=options.provider, rounds=options.rounds, seconds=options.seconds,
            targets=judged(results),
        )  # fmt: skip
        console.print(f"Written to {options.json}.")
    if options.plot is not None:
        from bench.turn_plot import draw

        draw(results, options.plot)
        console.print(f"Drawn in {options.plot}.")
    return 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = arguments("turn", (__doc__ or "").partition("\n\n")[0])
    parser.add_argument(
        "--concurrency", type=_numbers, default=_numbers(CONCURRENCY), metavar="N,N",
        help=f"conversations at once ({CONCURRENCY})",
    )  # fmt: skip
    parser.add_argument("--rounds", type=int, default=3, help="of every loop (3)")
    parser.add_argument("--seconds", type=float, default=6.0, help="of each round (6)")
    parser.add_argument(
        "--clients", type=int, default=200, help="of the fan-out and of the steady streams (200)"
    )
    parser.add_argument("--provider", choices=("anthropic", "openai"), default="anthropic")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the results: .svg or .png")
    parser.add_argument(
        "--parts", type=_parts, default=PARTS, metavar="NAME,NAME",
        help=f"measure only these of {', '.join((*PARTS, *MORE_PARTS))}",
    )  # fmt: skip
    mind = parser.add_argument_group(
        "the part mind", "turns of people who have memories and a history (--parts mind)"
    )
    mind.add_argument(
        "--memories", type=_numbers, default=(10_000,), metavar="N,N", help="of a user (10000)"
    )
    mind.add_argument(
        "--history", type=_numbers, default=(100,), metavar="N,N", help="messages before (100)"
    )
    mind.add_argument(
        "--subcortex-delay", type=_numbers, default=(), metavar="MS,MS",
        help="try a Subcortex that takes so long",
    )  # fmt: skip
    mind.add_argument(
        "--crowd", type=int, default=50, help="conversations at once; 0 leaves them out (50)"
    )
    mind.add_argument(
        "--pause", type=float, default=0.3, help="seconds between the one client's turns (0.3)"
    )
    mind.add_argument(
        "--real-time", action="store_true", help="go before all else that the machine does (root)"
    )
    options = parser.parse_args(argv)
    if options.plot is not None:
        from bench.turn_plot import need

        need(parser.error)
    return options


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _parts(text: str) -> tuple[str, ...]:
    parts = tuple(text.split(","))
    if unknown := set(parts) - {*PARTS, *MORE_PARTS}:
        raise argparse.ArgumentTypeError(f"no such part: {', '.join(unknown)}")
    return parts


def _measured(house: House, options: argparse.Namespace, console: Console) -> list[Row]:
    parts: Sequence[str] = options.parts
    seconds: float = options.seconds
    rounds: int = options.rounds
    loops = [Loops(c) for c in options.concurrency] if "closed" in parts else []
    steps: list[tuple[str, Callable[[], list[Row] | None]]] = []
    if "start" in parts:
        steps.append(("start", lambda: [house.starts(rounds)]))
    # A round goes through all of them, so that a change of the machine's speed meets all alike.
    steps += [
        (f"closed loop at {into.concurrency}", _round(house, into, seconds, number))
        for number in range(rounds)
        for into in loops
    ]
    if "open" in parts:
        steps.append(("open loop", lambda: _open(house, loops, seconds, rounds)))
    if "long" in parts:
        steps.append(("long conversation", lambda: house.long(turns=max(3, int(seconds * 10)))))
    if "fan_out" in parts:
        steps.append(("fan-out", lambda: [house.fan_out(options.clients, rounds)]))
    if "pace" in parts:
        steps.append(("steady streams", lambda: [house.pace(options.clients, seconds, 50.0)]))
    if "resident" in parts:
        steps.append(("memory", lambda: [house.resident()]))

    part: Part | None = None
    if "mind" in parts:
        part = Part(
            house, options.memories, options.history, options.subcortex_delay, options.crowd,
            options.pause, first=options.real_time,
        )  # fmt: skip
        steps += part.steps(seconds, rounds)

    found: list[Row] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, auto_refresh=False) as progress:
        task = progress.add_task("", total=len(steps))
        for name, step in steps:
            progress.update(task, description=name, refresh=True)
            found += step() or []
            progress.update(task, advance=1, refresh=True)
    if part is not None:
        found += part.rows()
    return [row for into in loops for row in into.rows()] + found


def _round(
    house: House, into: Loops, seconds: float, number: int
) -> Callable[[], list[Row] | None]:
    return lambda: house.closed(into, seconds, number)


def _open(house: House, loops: list[Loops], seconds: float, rounds: int) -> list[Row]:
    """Half of the closed loop's rate at 100 (or at the most that was measured), at random times."""
    if not loops:
        return []
    base = next((x for x in loops if x.concurrency == OPEN_FROM), loops[-1])
    rate = max(1.0, sorted(base.rates)[len(base.rates) // 2] / 2)
    together: dict[str, list[float]] = {}
    failed = 0
    for number in range(rounds):
        stages, errors = house.open(rate, seconds, number)
        failed += errors
        for stage, values in stages.items():
            together.setdefault(stage, []).extend(values)
    return [
        row(base.concurrency, f"open.{stage}", values, failed, turns_per_s=round(rate, 1))
        for stage, values in together.items()
    ]
