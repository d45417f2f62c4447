"""How a message of the history is read by the search: who says it, when, and in which pieces."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

import msgspec

#: Words of one part of a long message, about what an encoder reads at once.
PART_WORDS = 160
#: Parts of a message that are encoded; the words of all of it are found all the same.
MOST_PARTS = 32
#: Characters of a neighbour that belong to a window.
NEIGHBOUR = 600

_SENTENCE = re.compile(r"(?<=[.!?\n])\s+|(?<=[。！？])")


class PassageText(msgspec.Struct, frozen=True, kw_only=True):
    """A message as it is searched: `speaker` is a display name, `at` aware."""

    doc: int
    speaker: str
    at: datetime
    words: str


def indexed(one: PassageText, zone: ZoneInfo) -> str:
    """The text whose terms are indexed: the speaker and the local date belong to it."""
    at = one.at.astimezone(zone)
    return f"{one.speaker} {at.day} {at:%B %Y %A} {one.words}"


def encoded(one: PassageText) -> str:
    """The text of which a vector is made."""
    return f"{one.speaker}: {one.words}"


def window(before: PassageText | None, one: PassageText, after: PassageText | None) -> str:
    """A message with what was said just before and after it."""
    around = (
        encoded(before)[-NEIGHBOUR:] if before else "",
        encoded(one),
        encoded(after)[:NEIGHBOUR] if after else "",
    )
    return "\n".join(text for text in around if text)


def parts(one: PassageText) -> list[str]:
    """The message in pieces that an encoder can read whole; one piece for most messages."""
    pieces = _pieces(one.words)[:MOST_PARTS]
    return [f"{one.speaker}: {piece}" for piece in pieces] or [f"{one.speaker}:"]


def _pieces(words: str) -> list[str]:
    if len(words.split()) <= PART_WORDS:
        return [words] if words.strip() else []
    found: list[str] = []
    held: list[str] = []
    for sentence in _SENTENCE.split(words):
        for piece in _cut(sentence.split()):
            if held and len(held) + len(piece) > PART_WORDS:
                found.append(" ".join(held))
                held = []
            held += piece
    return [*found, " ".join(held)] if held else found


def _cut(words: Sequence[str]) -> list[list[str]]:
    """A sentence as it is, or in lengths that fit if it is none."""
    return [list(words[at : at + PART_WORDS]) for at in range(0, len(words), PART_WORDS)]
