"""The results as a picture. matplotlib is needed for this alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from bench.turn_figures import Row


def need(refuse: Callable[[str], object]) -> None:
    """Call `refuse` with what to do if matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        refuse("a plot needs matplotlib: pip install matplotlib, or leave --plot out")


def draw(results: Sequence[Row], path: Path) -> None:
    """Latency and rate over concurrency; the format is that of the file's name."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for stage, label, colour in (
        ("first_text", "MIRA", "tab:blue"),
        ("floor.first_text", "bare script", "tab:grey"),
    ):
        rows = [r for r in results if r["stage"] == stage and r["p50_ms"] is not None]
        at = [r["concurrency"] for r in rows]
        if rows:
            left.plot(at, [r["p50_ms"] for r in rows], "o-", color=colour, label=f"{label}, p50")
            left.plot(at, [r["p99_ms"] for r in rows], "o:", color=colour, label=f"{label}, p99")
    left.set(
        xscale="log", yscale="log", xlabel="conversations at once", ylabel="ms",
        title="Overhead to the first text",
    )  # fmt: skip
    rates = [r for r in results if r["stage"] == "rate"]
    at = [r["concurrency"] for r in rates]
    if rates:
        right.plot(at, [r["turns_per_s"] for r in rates], "o-", color="tab:blue", label="MIRA")
        right.plot(
            at, [r["floor_turns_per_s"] for r in rates], "o-", color="tab:grey",
            label="bare script",
        )  # fmt: skip
    right.set(xscale="log", xlabel="conversations at once", ylabel="turns/s", title="Rate")
    right.set_ylim(bottom=0)
    for axes in (left, right):
        axes.grid(visible=True, alpha=0.3)
        if axes.has_data():
            axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    pyplot.close(figure)
