"""The embedding benchmark, with tiny numbers: what it writes down, not how fast anything is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.embed import main, targets
from mira.memory.embedding.minilm import MiniLM
from tests.support.models import MODELS


def test_it_measures_busy_beside_idle_and_writes_both_down(
    minilm: MiniLM, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "embed.json"
    arguments = ["--rounds", "1", "--seconds", "0.05", "--models", str(MODELS)]
    assert main([*arguments, "--json", str(file)]) == 0
    written = json.loads(file.read_text())
    loads = {(row["what"], row["load"]) for row in written["results"] if "load" in row}
    assert {("query", "idle"), ("query", "embedding"), ("lag", "idle")} < loads
    assert all(row.get("count", 1) > 0 for row in written["results"])
    assert {"machine", "versions", "targets"} < set(written)
    assert "Texts a second" in capsys.readouterr().out


def test_the_target_is_held_against_the_idle_slices_of_the_same_run() -> None:
    rows = [
        {"what": "lag", "load": "idle", "p99_ms": 4.0},
        {"what": "lag", "load": "embedding", "p99_ms": 8.5},
        {"what": "lag", "load": "finding names", "p99_ms": 9.5},
    ]
    assert [(target["ms"], target["hit"]) for target in targets(rows)] == [
        (4.5, True),
        (5.5, False),
    ]
