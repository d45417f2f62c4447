"""The turn benchmark, with tiny numbers: what it writes down, not how fast anything is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.mind_loops import counted
from bench.turn import main
from bench.turn_figures import floor_overheads, overheads, per_second
from bench.turn_load import Turn
from bench.turn_targets import judged

STAMP = {"received": 10.010, "first_byte": 10.110, "done": 10.400}


def turn(outcome: str = "complete") -> Turn:
    return Turn(
        "m", due=10.0, sent=10.0, accepted=10.004, first_text=10.115, ended=10.420, outcome=outcome
    )


def test_the_providers_own_time_is_taken_out_of_every_stage_that_holds_it() -> None:
    found = overheads([turn()], {"m": STAMP})
    assert found["accepted"] == pytest.approx([4.0])
    assert found["first_text"] == pytest.approx([15.0])
    assert found["complete"] == pytest.approx([30.0])
    bare = floor_overheads([["m", 10.0, 10.115, 10.420, "complete"]], {"m": STAMP})
    assert bare["first_text"] == pytest.approx([15.0])
    assert bare["complete"] == pytest.approx([30.0])


def test_a_turn_that_failed_has_no_latency() -> None:
    assert overheads([turn("provider_outage")], {}) == {
        "accepted": [],
        "first_text": [],
        "complete": [],
    }


def test_the_rate_is_that_of_the_time_in_which_turns_begin() -> None:
    begins = [float(n) for n in range(11)]
    assert per_second([n + 0.5 for n in begins], begins) == 1.0
    assert per_second([], []) == 0.0


def test_a_figure_that_was_measured_is_judged_by_its_bound() -> None:
    rows: list[dict[str, Any]] = [
        {"concurrency": 1, "stage": "first_text", "p50_ms": 7.9, "p99_ms": 26.0},
        {"concurrency": 10, "stage": "first_text", "p50_ms": 900.0, "p99_ms": 900.0},
    ]
    assert [(t["figure"], t["hit"]) for t in judged(rows)] == [(7.9, True), (26.0, False)]


def test_a_small_run_writes_every_stage_of_the_real_server(tmp_path: Path) -> None:
    target, plot = tmp_path / "turn.json", tmp_path / "turn.svg"
    numbers = ["--concurrency", "1,2", "--rounds", "1", "--seconds", "0.5", "--clients", "3"]
    parts = "closed,open,long,fan_out,pace,resident"
    asked = ["--json", str(target), "--plot", str(plot), "--parts", parts]
    assert main([*numbers, *asked]) == 0
    written = json.loads(target.read_text())
    assert written["machine"]["cores"]
    assert written["versions"]["python"]
    rows = {(row["concurrency"], row["stage"]): row for row in written["results"]}
    for concurrency in (1, 2):
        for stage in ("accepted", "first_text", "complete", "server.committed", "floor.complete"):
            row = rows[concurrency, stage]
            assert row["errors"] == 0
            assert row["turns"] > 0
            assert 0 < row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"]
        assert rows[concurrency, "rate"]["ratio"] > 0
    assert rows[2, "open.first_text"]["errors"] == 0
    assert rows[3, "fan_out"]["frames_per_s"] > 0
    assert rows[3, "pace.lag"]["errors"] == 0
    assert 0 < rows[0, "resident"]["server_mb"] <= rows[0, "resident"]["all_mb"]
    assert plot.read_text().lstrip().startswith("<?xml")


def test_a_run_on_the_other_protocol_has_no_errors(tmp_path: Path) -> None:
    target = tmp_path / "turn.json"
    numbers = ["--concurrency", "2", "--rounds", "1", "--seconds", "0.3", "--parts", "closed"]
    assert main([*numbers, "--json", str(target), "--provider", "openai"]) == 0
    rows = json.loads(target.read_text())["results"]
    assert {row["stage"] for row in rows} >= {"first_text", "floor.first_text", "rate"}
    assert all(row["errors"] == 0 for row in rows)


def test_people_with_a_past_are_measured_beside_a_script_that_recalls(tmp_path: Path) -> None:
    target = tmp_path / "mind.json"
    numbers = ["--memories", "0,20", "--history", "10,50", "--subcortex-delay", "1700"]
    loops = ["--crowd", "2", "--rounds", "1", "--seconds", "0.5", "--pause", "0"]
    assert main(["--parts", "mind", *numbers, *loops, "--json", str(target)]) == 0
    rows = json.loads(target.read_text())["results"]
    assert all(row["errors"] == 0 for row in rows)
    of_group = {
        (row["memories"], row["history"]): row for row in rows if row["stage"] == "mind.ratio"
    }
    assert set(of_group) == {(0, 10), (20, 10), (20, 50)}
    assert of_group[0, 10]["memories_shown"] == 0
    assert of_group[20, 50]["memories_shown"] > 0 < of_group[20, 50]["messages_shown"]
    stages = {row["stage"] for row in rows}
    assert {"mind.recall.subcortex", "mind.server.settled", "mind.floor.embed"} <= stages
    [late] = [row for row in rows if row["stage"] == "mind.delay"]
    assert late["speculative"] == 1.0
    assert late["first_text_p50_ms"] >= 1500
    assert [row["concurrency"] for row in rows if row["stage"] == "mind.rate"] == [2]


@pytest.mark.parametrize(
    "asides",
    [
        [],
        [("m", 10.001), ("m", 10.002)],
        [("m", 10.020)],
        [("m", 10.001), ("", 10.5)],
    ],
    ids=["never", "twice", "after the model", "for no turn"],
)
def test_a_run_ends_where_the_subcortex_is_not_called_once_before_each_answer(
    asides: list[tuple[str, float]],
) -> None:
    counted([turn()], {"m": STAMP}, [("m", 10.001)])
    with pytest.raises(AssertionError):
        counted([turn()], {"m": STAMP}, asides)
