"""`mira bench subcortex`: how well, and how fast, a model reads messages before the answer.

Sixty messages labelled by hand (bench/subcortex_messages.py) go to the model that the settings
name for the purpose, one after another, as the server would ask it, but with a deadline long
enough to see what it would have said. Figures: how often straightforward and complex are told
apart, how often the phrases name what is meant, and how many answers came within the deadline of
the settings. With a hosted model this makes sixty small calls that cost money.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import anyio
import uvloop
from rich.console import Console
from rich.table import Table

from bench.report import arguments, quantile, write_json
from bench.subcortex_messages import MESSAGES, Labelled
from mira.actors import subcortex_answer
from mira.actors.subcortex import Model, is_weak, request_of
from mira.clock import SystemClock
from mira.errors import ProviderError
from mira.ids import SystemIds
from mira.llm import models as llm_models
from mira.llm.base import Finished
from mira.messages.content import plain_text
from mira.messages.subcortex import Complexity, Consider
from mira.prompt.subcortex import question
from mira.prompt.templates import Templates
from mira.settings import Settings, load

#: Seconds after which an answer is given up.
PATIENCE = 60.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; returns the exit code: 0, whatever the figures are."""
    parser = arguments("subcortex", (__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--messages", type=int, default=len(MESSAGES), help="only so many (60)")
    parser.add_argument("--show", action="store_true", help="print every answer")
    options = parser.parse_args(argv)
    chosen = MESSAGES[:: max(1, len(MESSAGES) // max(1, options.messages))][: options.messages]
    settings = load()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        model, rows = runner.run(_measured(settings, chosen))
    console = Console()
    if options.show:
        for row in rows:
            console.print_json(data=row)
    figures = summed(rows, settings.subcortex_deadline)
    table = Table(title=f"{model}: {len(rows)} messages")
    table.add_column("")
    table.add_column("", justify="right")
    for name, value in figures.items():
        table.add_row(name, f"{value:g}")
    console.print(table)
    if options.json is not None:
        write_json(options.json, rows, model=model, figures=figures)
        console.print(f"Written to {options.json}.")
    return 0


async def _measured(
    settings: Settings, messages: Sequence[Labelled]
) -> tuple[str, list[dict[str, Any]]]:
    clock = SystemClock()

    async def no_secret(_name: str) -> None:
        return None

    models = await llm_models.build(settings, no_secret, clock, SystemIds())
    try:
        model = models.for_purpose("subcortex")
        await model.chain[0].warm()
        return model.name, [await asked(model, one, clock) for one in messages]
    finally:
        await models.aclose()


async def asked(model: Model, one: Labelled, clock: SystemClock) -> dict[str, Any]:
    """What the model makes of one message, and how long that takes."""
    consider = Consider(turn_id=SystemIds().new(), words=one.words, exchanges=one.exchanges)
    request = request_of(
        question(Templates(), consider, pressure="none", most=6, short=is_weak(model))
    )
    began = clock.monotonic()
    answer, error = "", ""
    try:
        with anyio.move_on_after(PATIENCE):
            async with model.stream(request) as items:
                async for item in items:
                    if isinstance(item, Finished):
                        answer = plain_text(item.blocks)
    except ProviderError as failed:
        error = failed.code
    seconds = clock.monotonic() - began
    reading = subcortex_answer.read(answer, ())
    found = reading.complexity if reading else Complexity.COMPLEX
    return {
        "words": one.words, "label": one.label, "found": found, "seconds": round(seconds, 3),
        "readable": reading is not None, "error": error, "answer": answer,
        "phrases": list(reading.phrases) if reading else [],
        "entities": list(reading.entities) if reading else [],
        "about": _about(one, " ; ".join(reading.phrases).lower() if reading else ""),
    }  # fmt: skip


def _about(one: Labelled, phrases: str) -> bool | None:
    """Whether the phrases name what is meant; None where the label does not say what that is."""
    if not one.about:
        return None
    return all(any(word in phrases for word in group) for group in one.about)


def summed(rows: Sequence[dict[str, Any]], deadline: float) -> dict[str, float]:
    """The figures over all answers. Shares are from 0 to 1."""

    def share(of: Sequence[dict[str, Any]], right: str) -> float:
        return round(sum(bool(row[right]) for row in of) / len(of), 3) if of else 0.0

    judged = [{**row, "right": row["label"] == row["found"]} for row in rows]
    seconds = [row["seconds"] for row in rows]
    return {
        "complexity, right": share(judged, "right"),
        "straightforward ones, right": share(
            [r for r in judged if r["label"] == Complexity.STRAIGHTFORWARD], "right"
        ),
        "complex ones, right": share(
            [r for r in judged if r["label"] == Complexity.COMPLEX], "right"
        ),
        "phrases name what is meant": share([r for r in rows if r["about"] is not None], "about"),
        "readable": share(rows, "readable"),
        f"within {deadline:g} s": share(
            [{**r, "in time": r["seconds"] <= deadline and not r["error"]} for r in rows], "in time"
        ),
        "seconds, p50": round(quantile(seconds, 0.5), 3),
        "seconds, p95": round(quantile(seconds, 0.95), 3),
    }


if __name__ == "__main__":
    raise SystemExit(main())
