"""The benchmark of the engine runs and writes what others read."""

from __future__ import annotations

import json
from pathlib import Path

from bench.engine import main


def test_it_writes_machine_versions_and_one_row_for_each_peer(tmp_path: Path) -> None:
    path = tmp_path / "results" / "engine.json"
    assert main(["--rounds", "1", "--quick", "--json", str(path)]) == 0
    written = json.loads(path.read_text())
    assert {"cpu", "cores", "memory_mb", "load"} <= written["machine"].keys()
    assert {"python", "uvloop", "pykka"} <= written["versions"].keys()
    rows = {row["name"]: row for row in written["results"]}
    assert rows.keys() == {"mira", "pykka", "asyncio_queue", "bare"}
    for row in rows.values():
        assert row["tell_per_s"] > 0
        assert 0 < row["ask_us_p50"] <= row["ask_us_p99"]
        assert isinstance(row["idle_bytes"], int)
