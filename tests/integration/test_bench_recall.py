"""The recall benchmark runs on a data set that is invented here, and fits weights on it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from bench.recall import main
from bench.recall_fit import main as fit
from mira.memory.passage_ranking import read_weights
from tests.support.models import lend_to

SAID = (
    ("Ada", "I bought a cello in March, second hand."), ("Ben", "Which strings were broken?"),
    ("Ada", "The heron is back at the river."), ("Ben", "I saw it near the mill."),
    ("Ada", "My dentist moved to Graz."), ("Ben", "Then find another one."),
    ("Ada", "We had soup for lunch."), ("Ben", "It rained here all day."),
)  # fmt: skip
ASKED: tuple[tuple[str, list[str], int], ...] = (
    ("Which instrument did Ada buy?", ["D1:1"], 4), ("Where did Ben see the heron?", ["D1:4"], 4),
    ("Where does the dentist of Ada live now?", ["D1:5"], 1), ("What is not there?", [], 5),
)  # fmt: skip


def _conversation(name: str, shift: int) -> dict[str, Any]:
    said = [*SAID[shift:], *SAID[:shift]]
    ids = {words: f"D1:{n}" for n, (_, words) in enumerate(said, start=1)}
    was = {f"D1:{n}": ids[words] for n, (_, words) in enumerate(SAID, start=1)}
    return {
        "sample_id": name,
        "conversation": {
            "speaker_a": "Ada", "speaker_b": "Ben", "session_1_date_time": "9:05 am on 8 May, 2023",
            "session_1": [
                {"speaker": who, "dia_id": ids[words], "text": words} for who, words in said
            ],
        },
        "qa": [
            {"question": words, "evidence": [was[one] for one in evidence], "category": kind}
            for words, evidence, kind in ASKED
        ],
        "observation": {
            "session_1_observation": {"Ada": [["Ada owns a cello.", was["D1:1"]]], "Ben": []}
        },
    }  # fmt: skip


@pytest.fixture
def home() -> Iterator[str]:
    """A home that the database's account can enter, as it cannot the folders of pytest."""
    with TemporaryDirectory(prefix="mira-test-", dir="/tmp") as path:
        lend_to(Path(path))
        yield path


def test_it_asks_everything_writes_rankings_and_fits_weights_that_the_product_reads(
    tmp_path: Path, home: str
) -> None:
    data = tmp_path / "data.json"
    data.write_text(json.dumps([_conversation("one", 0), _conversation("two", 4)]))
    words = ["--dataset", "locomo", "--data", str(data), "--home", home]
    assert main([*words, "--out", str(tmp_path / "messages")]) == 0
    rows = [
        json.loads(line)
        for line in (tmp_path / "messages" / "rankings.jsonl").read_text().splitlines()
    ]
    assert [row["qid"] for row in rows] == [f"{c}/{n}" for c in ("one", "two") for n in range(4)]
    for row in rows:
        assert set(row["evidence"]) <= set(row["ranked"][:3])
        assert row["ms"] > 0
    summary = json.loads((tmp_path / "messages" / "summary.json").read_text())
    assert summary["messages"] == 16
    assert summary["all"]["questions"] == 6
    assert summary["all"]["R@5"] == 1.0
    assert summary["by category"].keys() == {"1", "4"}

    assert main([*words, "--out", str(tmp_path / "memories"), "--source", "memories"]) == 0
    found = (tmp_path / "memories" / "rankings.jsonl").read_text().splitlines()
    assert json.loads(found[0])["ranked"] == ["D1:1"]

    made = tmp_path / "weights.json"
    assert fit(["--data", "locomo", str(data), "--home", home, "--out", str(made)]) == 0
    weights = read_weights(made.read_bytes())
    assert weights.provenance["on"] == {"locomo": {"conversations": 2, "questions": 6}}
    again = ["--out", str(tmp_path / "again"), "--weights", str(made)]
    assert main([*words, *again]) == 0
