"""The note that stands for the older part of a long segment: asked for as lists, read with care."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mira.errors import ProviderMalformed
from mira.memory import answers
from mira.memory.lived import voice

#: The lists of a note, in the order in which they are shown, each with its heading.
PARTS = {
    "state": "Where we are",
    "preferences": "Wishes",
    "decisions": "Decided and promised",
    "references": "Exactly",
    "open": "Open",
}
#: Words that are asked for, and characters that are kept.
WORDS = 500
LONGEST = 6_000
#: Characters of one entry: what must stay exact may be long.
ENTRY = 800

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {
            name: {"type": "array", "items": {"type": "string"}, "maxItems": 20} for name in PARTS
        },
        "required": list(PARTS),
        "additionalProperties": False,
    }
)


def parse(words: str, _cut: bool) -> str:
    """The note as text: a heading for each list that holds something, its entries below.

    Raises ProviderMalformed if there is none to be found.
    """
    value = answers.read(words).value
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, Mapping):
        raise ProviderMalformed("It is not an object with the lists that were asked for.")
    sections = []
    room = LONGEST
    for name, heading in PARTS.items():
        entries = []
        for entry in _entries(value.get(name)):
            if len(entry) > room:
                break
            entries.append(f"- {entry}")
            room -= len(entry)
        if entries:
            sections.append("\n".join((f"{heading}:", *entries)))
    if not sections:
        raise ProviderMalformed("All lists are empty; note at least where we are.")
    note = "\n".join(sections)
    if voice.refused(note):
        raise ProviderMalformed("It is a refusal; only note what was said.")
    return note


def _entries(value: Any) -> list[str]:
    found = (answers.words(one, most=ENTRY) for one in answers.many(value))
    return list(dict.fromkeys(entry for entry in found if entry))
