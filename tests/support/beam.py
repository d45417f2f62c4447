"""Chats of a test's own, in the form of BEAM."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.replay_chats import Chat, read


def write_chat(
    folder: Path,
    batches: Sequence[tuple[str, Sequence[tuple[str, str]]]],
    questions: Mapping[str, Sequence[Mapping[str, Any]]],
) -> list[Chat]:
    """Write a chat named `chat` into a folder of chats, and read them all.

    A batch begins on a day, such as May-02-2025, and has what the user said, with the answers.
    Messages are numbered from 0 throughout.
    """
    written, number = [], 0
    for day, said in batches:
        turns = []
        for user, answer in said:
            turns.append([
                {"role": "user", "id": number, "content": user},
                {"role": "assistant", "id": number + 1, "content": answer},
            ])  # fmt: skip
            number += 2
        turns[0][0]["time_anchor"] = day
        written.append({"turns": turns})
    (folder / "chat").mkdir(parents=True)
    (folder / "chat" / "chat.json").write_text(json.dumps(written))
    (folder / "chat" / "probing_questions.json").write_text(json.dumps(questions))
    return read(folder)
