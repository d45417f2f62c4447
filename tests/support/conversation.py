"""Pieces of conversation for tests of what is remembered."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from mira.memory.chunks import Chunk, Line
from mira.messages.content import Role

VIENNA = ZoneInfo("Europe/Vienna")
SAID = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def line(number: int, who: str, text: str, *, recalled: tuple[str, ...] = ()) -> Line:
    """The line of a minute; `who` is "user" or "assistant"."""
    return Line(
        message_id=UUID(int=number),
        turn_id=UUID(int=1000 + number),
        role=Role(who),
        text=text,
        said_at=SAID + timedelta(minutes=number),
        recalled=recalled,
    )


def chunk(*said: tuple[str, str]) -> Chunk:
    """A chunk of these (who, words), numbered from 1."""
    return Chunk(lines=tuple(line(n, who, text) for n, (who, text) in enumerate(said, 1)))
