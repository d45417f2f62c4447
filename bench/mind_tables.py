"""The results of the part `mind` on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from bench.turn_figures import Row, ms

#: Stages as a reader knows them, in order; of the server from the acceptance on.
STAGES = {
    "mind.accepted": "send → accepted",
    "mind.server.started": "  started",
    "mind.recall.retained": "    what stood before",
    "mind.recall.subcortex": "    Subcortex",
    "mind.recall.names": "    names in the message",
    "mind.recall.replies": "    memories like the replies",
    "mind.recall.speculative:memories": "    memories, by the message",
    "mind.recall.speculative:history": "    history, by the message",
    "mind.recall.recall:memories": "    memories, by the phrases",
    "mind.recall.recall:history": "    history, by the phrases",
    "mind.recall.texts": "    words of what is shown",
    "mind.recall.linked": "    what is linked",
    "mind.recall.traces": "    traces",
    "mind.recall.all": "    recall in all",
    "mind.server.recalled": "  recalled",
    "mind.server.composed": "  composed",
    "mind.server.first_text": "  first text, provider included",
    "mind.server.streamed": "  streamed, provider included",
    "mind.server.committed": "  committed, provider included",
    "mind.server.settled": "  settled, provider included",
    "mind.first_text": "send → first text",
    "mind.complete": "send → complete",
    "mind.floor.commit": "  script: message committed",
    "mind.floor.subcortex": "  script: Subcortex",
    "mind.floor.embed": "  script: three phrases encoded",
    "mind.floor.search": "  script: memories searched",
    "mind.floor.model": "  script: model",
    "mind.floor.first_text": "script → first text",
    "mind.floor.complete": "script → complete",
}


def mind_tables(results: Sequence[Row]) -> list[Table]:
    """The stages of every group, and how they compare."""
    groups: dict[tuple[int, int, int, float], list[Row]] = {}
    for row in results:
        if row["stage"] in STAGES:
            key = (row["concurrency"], row["memories"], row["history"], row["delay_ms"])
            groups.setdefault(key, []).append(row)
    return [*(_stages(*key, rows) for key, rows in groups.items()), _ratios(results)]


def _stages(
    concurrency: int, memories: int, history: int, delay: float, rows: Sequence[Row]
) -> Table:
    """Milliseconds; where it does not say so, without the model's own time."""
    late = f", Subcortex {delay:g} ms late" if delay else ""
    table = Table(
        title=f"{memories:,} memories, {history:,} messages before, {concurrency} at once{late}"
    )
    table.add_column("stage, ms")
    for name in ("p50", "p95", "p99", "turns", "errors"):
        table.add_column(name, justify="right")
    order = list(STAGES)
    for row in sorted(rows, key=lambda row: order.index(row["stage"])):
        table.add_row(
            STAGES[row["stage"]], *(ms(row[f"p{n}_ms"]) for n in (50, 95, 99)),
            str(row["turns"]), str(row["errors"]),
        )  # fmt: skip
    return table


def _ratios(results: Sequence[Row]) -> Table:
    table = Table(title="Turns that recall, beside the bare script in the same rounds")
    for name in ("at once", "memories", "history", "Subcortex ms"):
        table.add_column(name, justify="right")
    table.add_column("what")
    for row in results:
        match row["stage"]:
            case "mind.ratio":
                told = (
                    f"first text p50 {row['p50_ratio']:.2f} ×, p99 {row['p99_ratio']:.2f} × its "
                    f"p50 ({row['p99_of_p99']:.2f} × its p99); shown {row['memories_shown']:g} "
                    f"memories, {row['messages_shown']:g} messages; by the message alone "
                    f"{row['speculative']:.0%}"
                )
            case "mind.rate":
                told = (
                    f"{row['turns_per_s']:g} turns/s, script {row['floor_turns_per_s']:g}: "
                    f"{row['ratio']:.2f} ×"
                )
            case "mind.history":
                told = f"first text p50 {row['p50_ratio']:.2f} × that of the shortest"
            case "mind.delay":
                told = f"costs {row['cost_ms']:.0f} ms; by the message {row['speculative']:.0%}"
            case _:
                continue
        table.add_row(
            str(row["concurrency"]), str(row["memories"]), str(row["history"]),
            f"{row['delay_ms']:g}", told,
        )  # fmt: skip
    return table
