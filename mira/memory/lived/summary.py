"""A summary of a segment: its four fields, their limits, and how it is asked for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

import msgspec

from mira.memory.chunks import Line, shortened
from mira.memory.forms import TEXT, object_of
from mira.memory.quoting import quoted

FIELDS = ("trace", "precis", "title", "complexity")
#: Sentences of the trace and of the precis: fewest, most.
TRACE, PRECIS = (3, 4), (2, 2)
#: Words of the title.
TITLE = 8
#: How much a segment counts when it is decided how many summaries a prompt holds.
COMPLEXITIES = (0.5, 1.0, 2.0, 3.0)
#: Characters of a field; what is longer is no summary.
LONGEST = {"trace": 2_400, "precis": 1_200, "title": 120}

SCHEMA = json.dumps(object_of(trace=TEXT, precis=TEXT, title=TEXT, complexity={"type": "number"}))
CORRECTION_SCHEMA = json.dumps(object_of(trace=TEXT, precis=TEXT))
NOTES_SCHEMA = json.dumps(object_of(notes=TEXT))


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a segment was. `complexity` is one of COMPLEXITIES."""

    trace: str
    precis: str
    title: str
    complexity: float

    @property
    def text(self) -> str:
        """All of it as one text: what its vector is made of."""
        return f"{self.title}\n{self.trace}\n{self.precis}"


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A line as a question shows it: `at` is local and absolute."""

    who: str
    at: str
    text: str


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier summary as a question shows it."""

    at: str
    title: str
    precis: str


def said(lines: Sequence[Line], zone: ZoneInfo, *, most: int | None = None) -> tuple[Said, ...]:
    """Lines for a question, in the user's local time; with `most`, each cut to so many
    characters."""
    return tuple(
        Said(
            who="user" if line.by_user else "you",
            at=local(line.said_at, zone),
            text=quoted(line.text if most is None else shortened(line.text, most)),
        )
        for line in lines
    )


def remembered(at: datetime, title: str, precis: str, zone: ZoneInfo) -> Remembered:
    """An earlier summary for a question."""
    return Remembered(at=local(at, zone), title=quoted(title), precis=quoted(precis))


def local(at: datetime, zone: ZoneInfo) -> str:
    """A moment as the user's clock showed it, with the day of the week."""
    return at.astimezone(zone).strftime("%A %Y-%m-%d %H:%M")
