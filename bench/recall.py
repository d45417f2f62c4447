"""`mira bench recall`: how much of what answers a question is found, on real conversations.

Each conversation of the data set becomes a user of its own on a Postgres of the benchmark's own;
what it is asked goes through the product's search with the question as the only phrase. No language
model takes part. Written are rankings.jsonl, a line for each question, and summary.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

import uvloop
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench.memory_house import House, house
from bench.recall_data import DATASETS, Conversation, Question, load
from bench.recall_memories import Remembered, remember
from bench.recall_score import Ranked, latencies, measures
from bench.recall_store import Stored, store
from bench.report import machine, versions
from mira.memory import passage_pool, passage_ranking, passages
from mira.memory.embedding import DEFAULT_MODEL
from mira.memory.passage_ranking import read_weights
from mira.memory.passages import PassageSearch
from mira.memory.query import RecallQuery

LIMIT = 50


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; returns the exit code: 0, whatever the figures are."""
    options = _options(argv)
    console = Console()
    conversations = load(options.dataset, options.data)
    if options.source == "memories" and not any(one.facts for one in conversations):
        console.print(f"{options.dataset} has no facts to be stored as memories.")
        return 2
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        rows = runner.run(_measured(options, conversations, console))
    summary = _summary(options, conversations, rows)
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "rankings.jsonl").open("w") as file:
        file.writelines(json.dumps(asdict(row)) + "\n" for row in rows)
    (options.out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    console.print(_table(options, summary))
    console.print(f"Written to {options.out}.")
    return 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="mira bench recall", description=(__doc__ or "").partition("\n\n")[0]
    )
    parser.add_argument("--dataset", choices=DATASETS, required=True)
    parser.add_argument(
        "--data", type=Path, required=True, metavar="PATH", help="a file, or a folder of them"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--source", choices=("messages", "memories"), default="messages")
    parser.add_argument(
        "--home", type=Path, metavar="DIR",
        help="keep the store there: what is in it already is not stored again",
    )  # fmt: skip
    parser.add_argument(
        "--weights", type=Path, metavar="FILE", help="rank with these in place of those that ship"
    )
    parser.add_argument(
        "--fusion", action="store_true", help="rank by the fused lanes alone, without weights"
    )
    options = parser.parse_args(argv)
    if not options.data.exists():
        parser.error(f"there is no {options.data}")
    return options


async def _measured(
    options: argparse.Namespace, conversations: Sequence[Conversation], console: Console
) -> list[Ranked]:
    weights = None if options.weights is None else read_weights(options.weights.read_bytes())
    rows: list[Ranked] = []
    async with house(options.home) as ready:
        with _progress(console) as progress:
            messages = sum(len(s) for one in conversations for s in one.sessions)
            storing = progress.add_task("Taking in", total=messages)
            asking = progress.add_task(
                "Asking", total=sum(len(one.questions) for one in conversations)
            )
            taken = 0
            for conversation in conversations:
                if options.source == "memories":
                    remembered = await remember(ready, conversation)
                    progress.advance(storing, sum(len(s) for s in conversation.sessions))
                    asked = _asked_memories(ready, remembered)
                else:
                    taken += sum(len(session) for session in conversation.sessions)
                    stored = await store(
                        ready, conversation, lambda count: progress.advance(storing, count)
                    )
                    progress.update(storing, completed=taken)
                    search = PassageSearch(
                        ready.database, ready.encoders, weights, rerank=not options.fusion
                    )
                    asked = _asked(search, stored)
                async for row in asked:
                    rows.append(row)
                    progress.advance(asking)
    return rows


async def _asked(search: PassageSearch, stored: Stored) -> AsyncIterator[Ranked]:
    for question in stored.conversation.questions:
        query = RecallQuery(phrases=(question.text,), limit=LIMIT)
        begun = perf_counter()
        found = await search.search(stored.user_id, query)
        took = (perf_counter() - begun) * 1000
        ranked = tuple(stored.names[hit.message_id] for hit in found.hits)
        yield _row(stored.conversation, question, ranked, took)


async def _asked_memories(house: House, stored: Remembered) -> AsyncIterator[Ranked]:
    """A memory found stands for the messages that it is known from, in their order."""
    for question in stored.conversation.questions:
        query = RecallQuery(phrases=(question.text,), limit=LIMIT)
        begun = perf_counter()
        found = await house.memories.search(stored.user_id, query, traced=False)
        took = (perf_counter() - begun) * 1000
        messages = [m for hit in found.hits for m in stored.evidence.get(hit.memory.id, ())]
        yield _row(stored.conversation, question, tuple(dict.fromkeys(messages))[:LIMIT], took)


def _row(
    conversation: Conversation, question: Question, ranked: tuple[str, ...], ms: float
) -> Ranked:
    return Ranked(
        qid=question.id, group=conversation.id, category=question.category,
        evidence=question.evidence, ranked=ranked, ms=round(ms, 2),
    )  # fmt: skip


def _summary(
    options: argparse.Namespace, conversations: Sequence[Conversation], rows: Sequence[Ranked]
) -> dict[str, Any]:
    categories = sorted({row.category for row in rows})
    by_category = {
        name: measures([row for row in rows if row.category == name]) for name in categories
    }
    return {
        "dataset": options.dataset,
        "source": options.source,
        "conversations": len(conversations),
        "messages": sum(len(s) for one in conversations for s in one.sessions),
        "machine": machine(),
        "versions": versions("asyncpg", "numpy", "onnxruntime", "tokenizers", "pystemmer"),
        "settings": {
            "model": DEFAULT_MODEL, "rerank": not options.fusion, "limit": LIMIT,
            "weights": str(options.weights) if options.weights else "shipped",
            "provenance": passage_ranking.fitted().provenance,
            "lanes": passage_ranking.LANE_WEIGHTS["recall"],
            "depth": passage_pool.DEPTH, "budget": passage_pool.BUDGET, "pool": passages.POOL,
        },
        "all": measures(rows),
        "by category": {name: found for name, found in by_category.items() if found},
        "ms": latencies(rows) if rows else {},
    }  # fmt: skip


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=console,
    )  # fmt: skip


def _table(options: argparse.Namespace, summary: dict[str, Any]) -> Table:
    shown = ("questions", "R@5", "R@10", "R@25", "R@50", "all@10", "MRR")
    table = Table(title=f"{options.dataset}, {options.source}")
    for name in ("", *shown):
        table.add_column(name, justify="right")
    for label, found in (("all", summary["all"]), *summary["by category"].items()):
        table.add_row(label, *(f"{found.get(name, 0):g}" for name in shown))
    table.caption = f"R@10 interval {summary['all'].get('R@10 interval')}, ms {summary['ms']}"
    return table


if __name__ == "__main__":
    raise SystemExit(main())
