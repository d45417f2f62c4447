"""What is remembered of a segment without a model that can tell: when it was, and how it began."""

from __future__ import annotations

from collections.abc import Sequence
from zoneinfo import ZoneInfo

from mira.memory.chunks import Line
from mira.memory.lived.summary import TITLE, Summary

#: Words of the user that are quoted, and of how many messages.
WORDS, MESSAGES = 14, 3


def plain(lines: Sequence[Line], user: str, zone: ZoneInfo) -> Summary:
    """In the first person, with the user's own first words; nothing in it can be untrue."""
    if not lines:
        return Summary(
            trace="I was there, but nothing was said.",
            precis="I was there, but nothing was said.",
            title="Nothing was said",
            complexity=0.5,
        )
    first = lines[0].said_at.astimezone(zone)
    by_user = [line for line in lines if line.by_user]
    openings = [f"“{_beginning(line.text)}”" for line in by_user[:MESSAGES]]
    day = f"{first.day} {first:%B %Y}"
    about = ", then ".join(openings) if openings else "nothing that was put into words"
    messages = f"{len(by_user)} message" + ("" if len(by_user) == 1 else "s")
    return Summary(
        trace=f"I talked with {user} on {day} at {first:%H:%M} about: {about}. "
        f"I was sent {messages}. I have not yet put it into words of my own.",
        precis=f"I talked with {user} on {day} about: {openings[0] if openings else about}. "
        "I have not yet put it into words of my own.",
        title=_title(by_user[0].text if by_user else "") or f"A talk on {day}",
        complexity=1.0,
    )


def _beginning(text: str) -> str:
    words = text.replace("“", "‘").replace("”", "’").split()
    short = " ".join(word[:40] for word in words[:WORDS])
    return short + " …" if len(words) > WORDS else short


def _title(text: str) -> str:
    title = " ".join(word[:14] for word in text.split()[:TITLE]).rstrip(" .,;:!?")
    return title if any(letter.isalnum() for letter in title) else ""
