"""Memories about to be archived, looked at once more: archived, kept with a note, or left."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal, get_args

import msgspec

from mira.memory.answers import objects, read, words
from mira.memory.forms import TEXT, choice, list_of, object_of
from mira.memory.quoting import quoted

#: Memories in one question.
MOST = 20
NOTE = 300

Action = Literal["archive", "salvage", "leave"]
ACTIONS: tuple[Action, ...] = get_args(Action)


class Fading(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that is about to be archived. `used`: how often; `idle`: use-days without use."""

    short_id: str
    since: str
    text: str
    used: int
    idle: int


class Review(msgspec.Struct, frozen=True):
    short_id: str
    action: Action
    note: str = ""


def shown(memories: Sequence[Fading]) -> tuple[Fading, ...]:
    """For the template."""
    return tuple(
        msgspec.structs.replace(m, text=quoted(" ".join(m.text.split()))) for m in memories
    )


def parse(text: str, memories: Sequence[Fading]) -> tuple[Review, ...]:
    """Read a model's answer: one review for each memory that it speaks of, once.

    To salvage takes a note; without one it is to leave. Raises ProviderMalformed if nothing can be
    made of the answer.
    """
    answer = read(text)
    known = {memory.short_id for memory in memories}
    found: dict[str, Review] = {}
    for item in objects(answer.value, "reviews", "action"):
        short_id = words(item.get("id"), most=40).lower()
        said = words(item.get("action"), most=20).lower()
        action = next((one for one in ACTIONS if one == said), None)
        if short_id not in known or action is None:
            continue
        note = words(item.get("note"), most=NOTE) if action == "salvage" else ""
        if action == "salvage" and not note:
            action = "leave"
        found.setdefault(short_id, Review(short_id, action, note))
    return tuple(found.values())


SCHEMA = json.dumps(
    object_of(reviews=list_of(object_of(id=TEXT, action=choice(*ACTIONS), note=TEXT)))
)
