"""A small made-up chat replayed: what it shows, and that it notices what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.provider_script import Behaviour, Failure
from bench.replay import lived, main
from bench.replay_answers import Rules
from bench.replay_chats import read
from bench.replay_report import render
from tests.support import models
from tests.support.beam import write_chat

#: Three evenings of somebody who keeps bees: what was said, and what was answered.
BATCHES = (
    ("May-02-2025", (
        ("I keep two hives of bees on the roof of our house in Graz.",
         "A roof is a fine place for them, as long as it is out of the wind."),
        ("I bought a new queen for my older hive Bramble from a breeder named Oswald Tiefenbach.",
         "Then give her four days in her cage before you let her out."),
    )),
    ("May-05-2025", (
        ("I saw that the new queen of my older hive Bramble lays well.",
         "Good. Then leave her alone for a week or two."),
        ("I want to harvest the honey of my older hive Bramble when it weighs 62 kilos.",
         "That is a good rule. Leave them at least twelve of these for the winter."),
    )),
    ("May-09-2025", (
        ("I prefer to sell the honey of my older hive Bramble in small jars of 250 grams.",
         "Small ones sell well. Put the place and the year on the label."),
        ("I have borrowed the extractor for the honey from my neighbour Leopoldine.",
         "Wash it with hot water before, and dry it well."),
    )),
)  # fmt: skip
QUESTIONS = {
    "information_extraction": [
        {"question": "Which breeder did I tell you the new queen came from?",
         "source_chat_ids": [2]},
        {"question": "How much should the older hive weigh in kilos when I harvest the honey?",
         "source_chat_ids": [6]},
    ],
}  # fmt: skip


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    """A folder with one chat, as BEAM has them."""
    write_chat(tmp_path / "chats", BATCHES, QUESTIONS)
    return tmp_path / "chats"


@pytest.mark.timeout(400)
def test_a_chat_is_lived_through_told_remembered_and_found_again(
    chats: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written, report = tmp_path / "replay.json", tmp_path / "replay.md"
    assert main(["--data", str(chats), "--json", str(written), "--report", str(report)]) == 0
    [row] = json.loads(written.read_text())["results"]
    assert row["wrong"] == []
    # Three days and the questions on a fourth: each is a segment with one summary.
    assert (row["turns"], row["segments"], row["summaries"]) == (8, 4, 4)
    assert row["turn_calls"] == {"subcortex then conversation": 8}
    # The first facts have none to be linked with, and questions leave no facts.
    assert row["collapses"]["calls"] == {
        "1 summary, 1 extraction, 1 links": 2,
        "1 summary, 1 extraction": 2,
    }
    assert row["memories"]["active"] == 6
    assert [probe["memory"] for probe in row["probed"]] == [True, True]
    assert 0 < row["prompt_tokens"]["max"] < 8_300
    assert "In 8 turns nothing was otherwise than it must be" in report.read_text()
    again = tmp_path / "again.md"
    assert main(["--results", str(written), "--report", str(again)]) == 0
    assert _tables(again) == _tables(report)
    left = report.read_text() + written.read_text() + capsys.readouterr().out
    assert not any(word in left for word in ("Tiefenbach", "Bramble", "honey"))


def _tables(report: Path) -> list[str]:
    return [line for line in report.read_text().splitlines() if line.startswith("|")]


class Mute(Rules):
    """A model that fails at every summary."""

    def take(self, last_user_message: str, *, queued: bool = True) -> Behaviour:
        said = super().take(last_user_message, queued=queued)
        failure = Behaviour(error=Failure(400, "invalid_request_error"))
        return failure if self.calls[-1] == "summary" else said


@pytest.mark.anyio
async def test_a_replay_says_so_when_segments_are_left_without_a_summary(chats: Path) -> None:
    [chat] = read(chats)
    row = await lived(chat, 1, rules=Mute(), prepare=models.lend_to)
    assert "ended segments without a summary: 1" in row["wrong"]
    assert any(problem.startswith("failed calls") for problem in row["wrong"])
    assert "this was not as it must be" in render([row])


@pytest.mark.parametrize("asked", [["--data", "nowhere"], ["--data", "chats", "--chats", "cats"]])
def test_a_chat_that_is_not_there_is_named_and_nothing_is_run(
    chats: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(chats.parent)
    with pytest.raises(SystemExit) as stopped:
        main(asked)
    assert stopped.value.code == 2
    assert asked[-1] in capsys.readouterr().err
