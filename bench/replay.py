"""`mira bench replay`: whole chats lived through, turn by turn, over the days that they took.

Each chat of a folder of BEAM becomes one user of a house of its own: real Postgres, Valkey,
embedding model and names, the real engine; a clock that goes from one turn to the next, and a
provider that answers by rule (bench.replay_answers). Segments end by silence, are summed up and
remembered; at last the chat's questions are asked in fragments. Nothing of the chats is written
down but figures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import uvloop

from bench.replay_answers import Rules
from bench.replay_chats import MOST_TOGETHER, TOGETHER, Chat, read
from bench.replay_figures import figures
from bench.replay_probes import Row
from bench.replay_report import render
from bench.replay_run import replay
from bench.replay_wiring import house
from bench.report import arguments, machine, write_json
from mira import telemetry


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; returns the exit code: 1 if anything was not as it must be."""
    options, chats = _options(argv)
    telemetry.configure("error")
    results: list[Row] = []
    for path in options.results or ():
        results += json.loads(path.read_text())["results"]
    if results:
        _leave(options, results)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for chat in chats:
            row = runner.run(lived(chat, options.turns, live=options.live, progress=_say))
            results.append(row)
            _leave(options, results)
        if options.local:
            results.append(runner.run(lived(chats[0], options.local, local=True, progress=_say)))
            _leave(options, results)
    for row in results:
        for problem in row["wrong"]:
            _say(f"Chat {row['chat']}: {problem}")
    return int(any(row["wrong"] for row in results))


async def lived(
    chat: Chat,
    turns: int | None = None,
    *,
    local: bool = False,
    rules: Rules | None = None,
    live: int | None = None,
    prepare: Callable[[Path], None] = lambda _home: None,
    progress: Callable[[str], None] = lambda _line: None,
) -> Row:
    """Replay a chat, or its first turns, in a house of its own, and give the figures.

    `rules`: how the provider answers. `local`: the local model does instead, and no questions are
    asked at the end. `live`: the tokens of live turns that call for a brief, in place of the usual.
    `prepare` is given the home before anything is in it. `progress` hears of every segment.
    """
    async with house(
        chat.exchanges[0].at, local=local, rules=rules, live=live, prepare=prepare
    ) as ready:
        found = await replay(ready, chat, turns, probes=not local, progress=progress)
        return {
            "local": local,
            "together": chat.together,
            "live": ready.settings.history_tokens,
            "of": len(chat.exchanges),
            **await figures(ready, found, local=local),
        }


def _options(argv: Sequence[str] | None) -> tuple[argparse.Namespace, list[Chat]]:
    parser = arguments("replay", (__doc__ or "").partition("\n\n")[0])
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", type=Path, metavar="DIR", help="a folder of chats of BEAM")
    source.add_argument(
        "--results", type=Path, nargs="+", metavar="FILE",
        help="replay nothing; what these runs have left as JSON is reported together",
    )  # fmt: skip
    parser.add_argument("--chats", metavar="1,2,…", help="only these of them")
    parser.add_argument("--turns", type=int, metavar="N", help="only the first turns of each")
    parser.add_argument(
        "--together", type=int, default=TOGETHER, metavar="N",
        help=f"turns of a sitting ({TOGETHER}), of which there are two a day",
    )  # fmt: skip
    parser.add_argument("--live", type=int, metavar="N", help="MIRA_HISTORY_TOKENS (40000)")
    parser.add_argument(
        "--local", type=int, default=0, metavar="N",
        help="then the first N turns of the first one on the local model",
    )  # fmt: skip
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the tables there")
    options = parser.parse_args(argv)
    if not 1 <= options.together <= MOST_TOGETHER:
        parser.error(f"a sitting has from 1 to {MOST_TOGETHER} turns")
    only = None if options.chats is None else options.chats.split(",")
    try:
        return options, [] if options.data is None else read(
            options.data, only, together=options.together
        )
    except (OSError, ValueError) as error:
        parser.error(str(error))


def _leave(options: argparse.Namespace, results: Sequence[Row]) -> None:
    """Write down what there is by now, so that a run that breaks off has left something."""
    if options.json is not None:
        write_json(options.json, results, "asyncpg", "onnxruntime", "spacy")
    if options.report is not None:
        options.report.parent.mkdir(parents=True, exist_ok=True)
        options.report.write_text(render(results, machine()))


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
