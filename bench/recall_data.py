"""The data sets of the recall benchmark, each read into the same shape.

Nothing is left out and nothing is added: every message with its words (of a picture: its caption),
every question with the ids of the messages that answer it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from mira.messages.content import Role

#: Where a conversation gives no date at all, it begins here.
_SOME_DAY = datetime(2024, 1, 1, 9, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Message:
    id: str
    role: Role
    text: str
    at: datetime


@dataclass(frozen=True)
class Fact:
    """Something that can be stored as a memory, and the messages that it is known from."""

    text: str
    evidence: tuple[str, ...]
    at: datetime


@dataclass(frozen=True)
class Question:
    id: str
    text: str
    category: str
    #: Ids of messages, each once, none that does not exist.
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Conversation:
    """Sessions in their order; times rise throughout. Names are None where none are known."""

    id: str
    user: str | None
    assistant: str | None
    sessions: tuple[tuple[Message, ...], ...]
    questions: tuple[Question, ...]
    facts: tuple[Fact, ...] = ()


def load(dataset: str, path: Path) -> list[Conversation]:
    """Read a data set: a file, or a folder of them. Raises ValueError if nothing is there."""
    found = list(_LOADERS[dataset](path))
    if not found:
        raise ValueError(f"There is no conversation of {dataset} in {path}.")
    return found


def locomo(path: Path) -> Iterator[Conversation]:
    """Two people, in dated sessions; evidence ids are sometimes several in one string."""
    for entry in _json_files(path):
        for one in entry if isinstance(entry, list) else [entry]:
            chat = one["conversation"]
            names = [key for key in chat if re.fullmatch(r"session_\d+", key)]
            sessions, ended = [], None
            for name in sorted(names, key=lambda key: int(key.split("_")[1])):
                began = _locomo_time(chat[f"{name}_date_time"])
                said = [
                    (m["dia_id"], _role(m["speaker"], chat["speaker_a"]), _words(m), None)
                    for m in chat[name]
                ]
                sessions.append(_session(said, began, ended))
                ended = sessions[-1][-1].at if sessions[-1] else ended
            ids = {m.id for session in sessions for m in session}
            questions = [
                Question(
                    f"{one['sample_id']}/{n}", qa["question"], str(qa["category"]),
                    _known(_turn_ids(qa.get("evidence")), ids),
                )
                for n, qa in enumerate(one["qa"])
            ]  # fmt: skip
            yield Conversation(
                one["sample_id"], chat["speaker_a"], chat["speaker_b"], tuple(sessions),
                tuple(questions), tuple(_observations(one, ids, sessions)),
            )  # fmt: skip


def realtalk(path: Path) -> Iterator[Conversation]:
    """Two people's chat; each message has a time of its own, in no particular order of keys."""
    for entry in _json_files(path):
        names = [key for key in entry if re.fullmatch(r"session_\d+", key)]
        names.sort(key=lambda key: int(key.split("_")[1]))
        first = [m["speaker"] for name in names for m in entry[name]]
        speakers = list(dict.fromkeys(first))
        sessions, ended = [], None
        for name in names:
            said = [
                (m["dia_id"], _role(m["speaker"], speakers[0]), _words(m), _realtalk_time(m))
                for m in entry[name]
            ]
            sessions.append(_session(said, None, ended))
            ended = sessions[-1][-1].at if sessions[-1] else ended
        ids = {m.id for session in sessions for m in session}
        group = str(entry.get("name") or "chat")
        questions = [
            Question(
                f"{group}/{n}", qa["question"], str(qa.get("category", "")),
                _known(_turn_ids(qa.get("evidence")), ids),
            )
            for n, qa in enumerate(entry["qa"])
        ]  # fmt: skip
        yield Conversation(
            group, speakers[0], speakers[1] if len(speakers) > 1 else None, tuple(sessions),
            tuple(questions),
        )  # fmt: skip


def beam(path: Path) -> Iterator[Conversation]:
    """A user and an assistant; a batch of turns is a session."""
    folders = [path] if (path / "chat.json").exists() else sorted(path.iterdir(), key=_natural)
    for folder in folders:
        if not (folder / "chat.json").exists():
            continue
        sessions, ended = [], None
        for batch in json.loads((folder / "chat.json").read_text()):
            said, day = [], None
            for message in (m for turn in batch["turns"] for m in turn):
                if anchor := message.get("time_anchor"):
                    day = datetime.strptime(anchor, "%B-%d-%Y").replace(hour=9, tzinfo=UTC)
                text = re.sub(r"\s*->->\s*[\d,.\s]*$", "", message["content"])
                said.append((str(message["id"]), Role(message["role"]), text, day))
            sessions.append(_session(said, None, ended))
            ended = sessions[-1][-1].at if sessions[-1] else ended
        ids = {m.id for session in sessions for m in session}
        asked = json.loads((folder / "probing_questions.json").read_text())
        questions = [
            Question(
                f"{folder.name}/{ability}/{n}", one["question"], ability,
                _known(_numbers(one.get("source_chat_ids")), ids),
            )
            for ability, several in asked.items()
            for n, one in enumerate(several)
        ]  # fmt: skip
        yield Conversation(folder.name, None, None, tuple(sessions), tuple(questions))


_LOADERS: dict[str, Callable[[Path], Iterator[Conversation]]] = {
    "locomo": locomo, "beam": beam, "realtalk": realtalk,
}  # fmt: skip
DATASETS = tuple(_LOADERS)


def _json_files(path: Path) -> Iterator[Any]:
    files = sorted(path.glob("*.json"), key=_natural) if path.is_dir() else [path]
    for file in files:
        yield json.loads(file.read_text())


def _natural(path: Path) -> tuple[int, str]:
    digits = re.search(r"\d+", path.name)
    return (int(digits.group()) if digits else 0, path.name)


def _session(
    said: Sequence[tuple[str, Role, str, datetime | None]], began: datetime | None,
    ended: datetime | None,
) -> tuple[Message, ...]:  # fmt: skip
    """Messages whose times rise: a minute after the one before, where none is given or it is
    earlier than that."""
    at = began or (ended + timedelta(hours=1) if ended else _SOME_DAY)
    if ended is not None and at <= ended:
        at = ended + timedelta(minutes=1)
    messages = []
    for number, (name, role, text, given) in enumerate(said):
        if number:
            at += timedelta(minutes=1)
        if given is not None and (given > at or (not number and ended is None and began is None)):
            at = given
        messages.append(Message(name, role, text, at))
    return tuple(messages)


def _role(speaker: str, first: str) -> Role:
    return Role.USER if speaker == first else Role.ASSISTANT


def _words(message: dict[str, Any]) -> str:
    parts = (message.get("text") or message.get("clean_text") or "", message.get("blip_caption"))
    return " ".join(part.strip() for part in parts if part)


def _locomo_time(text: str) -> datetime:
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


def _realtalk_time(message: dict[str, Any]) -> datetime | None:
    text = message.get("date_time")
    return datetime.strptime(text, "%d.%m.%Y, %H:%M:%S").replace(tzinfo=UTC) if text else None


def _turn_ids(evidence: Any) -> list[str]:
    given = evidence if isinstance(evidence, list) else [evidence]
    return [found for each in given for found in re.findall(r"D\d+:\d+", str(each))]


def _numbers(value: Any) -> list[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for each in value for number in _numbers(each)]
    return [] if value is None else [str(value)]


def _known(ids: list[str], all_ids: set[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for one in ids if one in all_ids))


def _observations(
    one: dict[str, Any], ids: set[str], sessions: list[tuple[Message, ...]]
) -> Iterator[Fact]:
    when = {m.id: m.at for session in sessions for m in session}
    for by_speaker in one.get("observation", {}).values():
        for facts in by_speaker.values():
            for text, evidence in facts:
                known = _known(_turn_ids(evidence), ids)
                if known:
                    yield Fact(text, known, max(when[each] for each in known))
