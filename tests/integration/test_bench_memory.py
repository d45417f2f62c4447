"""The benchmark of memory runs and writes what others read."""

from __future__ import annotations

import json
from pathlib import Path

from bench.memory import main


def test_it_measures_searches_writes_scores_and_sizes(tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    words = ["--rows", "90", "--users", "3", "--searches", "6", "--writes", "2", "--quick"]
    assert main([*words, "--json", str(path)]) == 0
    written = json.loads(path.read_text())
    rows = {row["what"]: row for row in written["results"]}
    for name in ("whole", "embedding", "dense", "lexical", "entity", "write"):
        assert 0 < rows[name]["p50"] <= rows[name]["p95"] <= rows[name]["p99"], name
    assert rows["recall@20"]["worst"] == 1.0
    assert rows["rescoring, all changed"]["changed"] == 30
    assert rows["rescoring, none changed"]["changed"] == 0
    assert rows["size"]["postings"] > 0
