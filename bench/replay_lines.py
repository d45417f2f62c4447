"""The lines of a conversation as the questions of memory show them, and sentences about them.

Each sentence is in the words of the line, in the first person, and with the day in full, so that
it is true. No two lines are told in the same words, unless they were.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from bench.replay_words import MONTHS, content_words, first_words, of_user, statements, words_of

_LINE = re.compile(
    r'<line (?:n="(\d+)" )?from="(\w+)" at="\w+ ([\d-]+) [\d:]+"[^>]*>(.*?)</line>', re.DOTALL
)
#: Words of a line that are told, and words that name what it is about.
TOLD, ABOUT = 22, 6
#: Words for a time that would not last. A clause with one of them is not told.
_FLEETING = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|now|ago|nowadays|earlier|later|the other day"
    r"|(?:last|next|this|coming|past) \w+)\b",
    re.IGNORECASE,
)
#: Words with which answers begin, whatever they are about.
_POLITE = words_of(
    "certainly sure absolutely great okay yes please let's here's help happy look go"
)
_FRAMES = (
    "On {day} I heard that {what}.",
    "I was told on {day} that {what}.",
    "I then learned that {what}.",
    "After that I took in that {what}.",
)


class Line(NamedTuple):
    """A line; its day in words. `number` is 0 where the question does not count its lines."""

    number: int
    by_user: bool
    day: str
    text: str


def lines(data: str) -> list[Line]:
    """The lines of a question's data."""
    found = []
    for number, who, day, text in _LINE.findall(data):
        year, month, of_month = map(int, day.split("-"))
        written = f"{of_month} {MONTHS[month - 1]} {year}"
        found.append(Line(int(number or 0), who == "user", written, text))
    return found


def told(said: list[Line]) -> list[str]:
    """A sentence for each line of the user that says anything."""
    found: dict[str, None] = {}
    for line in said:
        frame = _FRAMES[len(found) % len(_FRAMES)]
        if line.by_user and (what := _what(line.text)):
            found[frame.format(day=line.day, what=what)] = None
        elif line.by_user and (about := about_what(line.text)):
            found[f"On {line.day} I was asked about {about}."] = None
    return list(found)


def answered(said: list[Line]) -> str:
    """A sentence for the last line of the assistant that says anything."""
    about = (about_what(line.text) for line in reversed(said) if not line.by_user)
    last = next((one for one in about if one), "")
    return f"My answer was about {last}." if last else "I answered as well as I could."


def about_what(text: str) -> str:
    """The first words of a text that name something."""
    words = [word for word in content_words(text) if not _FLEETING.search(word)]
    return " ".join([word for word in dict.fromkeys(words) if word not in _POLITE][:ABOUT])


def _what(text: str) -> str:
    """The first thing that a message states of its writer and that will last, as a clause."""
    for clause in statements(text, 3):
        short = first_words(of_user(clause), TOLD)
        if not _FLEETING.search(short):
            return short[:1].lower() + short[1:]
    return ""
