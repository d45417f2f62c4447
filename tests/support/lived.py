"""Segments that were made up (lived.json), and sentences that tell of them truly, in other words.

For measuring the check of summaries: how much of what is true it doubts, and, once names, numbers
and dates are changed by `changed`, how much of what is not true it finds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from mira.memory.chunks import Line
from mira.messages.content import Role


class Lived(msgspec.Struct, frozen=True):
    """`began` is local; the user (first) and the assistant speak in turn, a minute apart."""

    user: str
    zone: str
    began: str
    said: tuple[str, ...]
    true: tuple[str, ...]

    def lines(self) -> list[Line]:
        at = datetime.fromisoformat(self.began).replace(tzinfo=ZoneInfo(self.zone))
        return [
            Line(
                message_id=UUID(int=number),
                turn_id=UUID(int=number // 2),
                role=Role.ASSISTANT if number % 2 else Role.USER,
                text=text,
                said_at=at + timedelta(minutes=number),
            )
            for number, text in enumerate(self.said)
        ]


SEGMENTS = msgspec.json.decode(
    Path(__file__).with_suffix(".json").read_bytes(), type=tuple[Lived, ...]
)

#: What names, in place of those that are true, a summary might invent.
OTHERS = ("Bernhard", "Zagreb", "Whitfield", "Tamara", "Cordoba", "Lindqvist", "Osaka")
_NAMES = re.compile(
    r"\b(?:Nora|Paula|Emil|Salzburg|Trieste|Tom|Kowalski|Juniper|Albany|Mira|Jonas|Leipzig|Seidel"
    r"|Priya|Kenji|Redis|Luis|Marta|Hugo|Grace|Raymond|Whittington|Callum|Leeds|Ada|Fennec|Orlo"
    r"|Brightline|Samuel|Wanjiru|Otieno|Yuki|Halden|Beatrix|Ines|Anselmo|Ferreira|Filipa|Oskar|Rex"
    r"|Brandl|Graz|Lena|Linz|Devon|Linden|Harper|Malik|Idris)\b"
)
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_GERMAN = ("Januar", "Dezember", "April")
_DATE = re.compile(rf"\b(\d{{1,2}})(\.?) ({'|'.join((*_MONTHS, *_GERMAN))})\b")
_WORDS = {
    "two": "four", "three": "five", "four": "seven", "five": "nine", "six": "eleven",
    "eight": "six", "nine": "thirteen", "ten": "fourteen", "twelve": "seventeen", "forty": "sixty",
    "zwei": "vier", "fifteen": "eighteen", "drei": "fünf", "sechs": "acht", "elf": "dreizehn",
    "twenty-three": "thirty-one", "six hundred": "nine hundred",
}  # fmt: skip
_WORD = re.compile(r"\b(?:" + "|".join(sorted(_WORDS, key=len, reverse=True)) + r")\b")
_FIGURES = re.compile(r"(?<![\w.:])\d[\d,.:]*\d\b|(?<![\w.:])\d\b(?![.:]\d)")


def changed(sentence: str, place: int) -> Iterator[tuple[str, str]]:
    """The sentence with one thing in it made untrue, as (what was changed, the sentence): every
    name, every number, and of every date the day and the month. `place` varies what it becomes."""
    for count, match in enumerate(_NAMES.finditer(sentence)):
        other = OTHERS[(place + count) % len(OTHERS)]
        yield "name", sentence[: match.start()] + other + sentence[match.end() :]
    dates = list(_DATE.finditer(sentence))
    for match in dates:
        day = (int(match[1]) + 4) % 28 + 1
        yield "date", sentence[: match.start(1)] + str(day) + sentence[match.end(1) :]
        months = _GERMAN if match[2] else _MONTHS
        month = months[(months.index(match[3]) + 1) % len(months)]
        yield "date", sentence[: match.start(3)] + month + sentence[match.end(3) :]
    for match in _FIGURES.finditer(sentence):
        if any(date.start() <= match.start() < date.end() for date in dates):
            continue
        yield "number", sentence[: match.start()] + _other(match[0]) + sentence[match.end() :]
    for match in _WORD.finditer(sentence):
        yield "number", sentence[: match.start()] + _WORDS[match[0]] + sentence[match.end() :]


def _other(figures: str) -> str:
    """Another number in the same form."""
    first = int(figures[0])
    lead = str((first + 3) % 9 + 1) if figures[0] != "0" else "0"
    if ":" in figures:
        hours, minutes = figures.split(":")
        return f"{(int(hours) + 2) % 24}:{(int(minutes) + 17) % 60:02}"
    return lead + figures[1:]
