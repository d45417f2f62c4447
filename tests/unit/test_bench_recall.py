"""The recall benchmark reads its data sets whole, scores as said, and fits what is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.recall_data import load
from bench.recall_fit import Case, fit
from bench.recall_score import Ranked, measures
from mira.messages.content import Role


def _write(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def test_two_people_in_dated_sessions(tmp_path: Path) -> None:
    said = [
        {"speaker": "Ada", "dia_id": "D1:1", "text": "Look.", "blip_caption": "a heron"},
        {"speaker": "Ben", "dia_id": "D1:2", "text": "Nice."},
    ]
    [chat] = load("locomo", _write(tmp_path / "l.json", [{
        "sample_id": "c1",
        "conversation": {
            "speaker_a": "Ada", "speaker_b": "Ben", "session_1": said,
            "session_1_date_time": "1:56 pm on 8 May, 2023",
        },
        "qa": [{"question": "q", "evidence": ["D1:1; D1:2", "D9:9"], "category": 1}],
        "observation": {"s": {"Ada": [["Ada saw a heron.", "D1:1"]]}},
    }]))  # fmt: skip
    assert (chat.user, chat.assistant) == ("Ada", "Ben")
    assert [m.text for m in chat.sessions[0]] == ["Look. a heron", "Nice."]
    assert [m.role for m in chat.sessions[0]] == [Role.USER, Role.ASSISTANT]
    assert chat.sessions[0][0].at.isoformat() == "2023-05-08T13:56:00+00:00"
    assert chat.questions[0].evidence == ("D1:1", "D1:2")
    assert chat.facts[0].evidence == ("D1:1",)


def test_a_user_and_an_assistant_in_batches(tmp_path: Path) -> None:
    turn = [
        {"role": "user", "id": 0, "content": "Hello ->-> 1,1", "time_anchor": "March-15-2024"},
        {"role": "assistant", "id": 1, "content": "Hello."},
    ]
    _write(tmp_path / "7" / "chat.json", [{"turns": [turn]}])
    asked = [{"question": "q", "source_chat_ids": {"first": [0], "second": 1}}, {"question": "r"}]
    _write(tmp_path / "7" / "probing_questions.json", {"temporal": asked})
    [chat] = load("beam", tmp_path)
    assert [m.text for m in chat.sessions[0]] == ["Hello", "Hello."]
    assert [q.evidence for q in chat.questions] == [("0", "1"), ()]


def test_chats_of_a_folder_with_times_of_their_own(tmp_path: Path) -> None:
    said = [
        {"clean_text": "Hi", "speaker": "Mei", "date_time": "05.03.2024, 09:10:00",
         "dia_id": "D1:1"},
        {"clean_text": "Ho", "speaker": "Tom", "date_time": "05.03.2024, 09:09:00",
         "dia_id": "D1:2"},
    ]  # fmt: skip
    question = {"question": "q", "evidence": ["D1:2"], "category": 2}
    for name in ("Chat_1", "Chat_2"):
        _write(tmp_path / f"{name}.json", {"name": name, "session_1": said, "qa": [question]})
    chats = load("realtalk", tmp_path)
    assert [chat.id for chat in chats] == ["Chat_1", "Chat_2"]
    first, second = chats[0].sessions[0]
    assert first.at < second.at
    assert chats[0].user == "Mei"


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no conversation"):
        load("beam", tmp_path)


def test_scores_are_shares_of_the_evidence() -> None:
    rows = [
        Ranked("1", "a", "x", ("m", "n"), ("k", "m"), 1.0),
        Ranked("2", "a", "x", ("m",), ("m",), 1.0),
        Ranked("3", "a", "x", (), ("m",), 1.0),
    ]
    found = measures(rows)
    assert (found["questions"], found["R@10"], found["all@10"], found["MRR"]) == (
        2,
        0.75,
        0.5,
        0.75,
    )


def test_the_fit_finds_what_speaks_for_an_answer() -> None:
    random = np.random.default_rng(1)
    cases = []
    for number in range(60):
        features = {"tells": random.random(20), "says nothing": random.random(20)}
        answers = (np.arange(20) == features["tells"].argmax()).astype(float)
        names = tuple(str(n) for n in range(20))
        cases.append(Case("set", f"{number}", "q", "x", ("a",), names, answers, features))
    weights = fit(cases, ["tells", "says nothing"])
    assert weights["tells"] > 3
    assert abs(weights["says nothing"]) < 1
