"""The fields in a model's answer, whichever shape it gave them: JSON, tags, labelled lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import json_repair

from mira.errors import ProviderMalformed
from mira.memory.answers import LONGEST, decoded, read
from mira.messages.text import storable

#: Other names that models give to the fields.
_NAMES = {
    "trace": ("trace", "summary", "story", "narrative", "zusammenfassung"),
    "precis": ("precis", "précis", "precís", "short", "brief", "short_summary",
        "tldr", "kurzfassung"),
    "title": ("title", "titel", "heading", "headline", "name"),
    "complexity": ("complexity", "komplexität", "weight", "score"),
    "notes": ("notes", "note", "summary", "notizen"),
}  # fmt: skip
_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_THOUGHT_ENDS = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_FENCE = re.compile(r"^```\w*\s*$|```$", re.MULTILINE)
_WHITE = re.compile(r"\s+")
_MARKS = re.compile(r"^[\s*_#>\"'“”`-]+|[\s*_#\"'“”`]+$")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
_LEVELS = {
    "trivial": 0.5, "low": 0.5, "minimal": 0.5, "simple": 1.0, "normal": 1.0, "medium": 1.0,
    "moderate": 1.0, "high": 2.0, "complex": 2.0, "very high": 3.0, "very complex": 3.0,
}  # fmt: skip


def fields(text: str, wanted: Iterable[str]) -> dict[str, Any]:
    """What an answer gives for the `wanted` fields: text in one line, complexity as a number.

    One that is not there, or is not of its kind, is left out. Raises ProviderMalformed for an
    answer that is empty, or too long to be read.
    """
    if len(text) > LONGEST:
        raise ProviderMalformed("The answer is far too long.")
    text = _without_thoughts(storable(text)).strip().removeprefix("\ufeff")
    if not text:
        raise ProviderMalformed("The answer is empty.")
    names = tuple(wanted)
    found = _in_json(text, names) or _in_tags(text, names) or _in_lines(text, names)
    tidy = {name: _value(name, value) for name, value in found.items()}
    return {name: value for name, value in tidy.items() if value is not None}


def bare(text: str) -> str:
    """An answer as it is, in one line, for one that was to be a single text."""
    return _text(_FENCE.sub("", _without_thoughts(storable(text))))


def _without_thoughts(text: str) -> str:
    """Looked for up to where the last one ends: of many that never end each would be followed to
    the end of the text."""
    end = max((found.end() for found in _THOUGHT_ENDS.finditer(text)), default=0)
    return _THOUGHT.sub("", text[:end]) + text[end:]


def _in_json(text: str, names: tuple[str, ...]) -> dict[str, Any]:
    if "{" not in text:
        return {}
    try:
        answer = read(text)
        # What had no end was taken for a list of which nothing is whole; here each field counts.
        value = answer.value if answer.value else _mended(text)
    except ProviderMalformed:
        return {}
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, Mapping) and (found := _named(one, names)):
            return found
        inner = list(one.values()) if isinstance(one, Mapping) else []
        for deeper in inner:
            if isinstance(deeper, Mapping) and (found := _named(deeper, names)):
                return found
    return {}


def _mended(text: str) -> Any:
    try:
        return decoded(json_repair.loads(text[text.index("{") :], skip_json_loads=True))
    except (ValueError, RecursionError):
        return None


def _named(given: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    by_name = {str(key).strip().lower(): value for key, value in given.items()}
    return {
        name: by_name[known]
        for name in names
        for known in [next((one for one in _NAMES[name] if one in by_name), "")]
        if known
    }


def _in_tags(text: str, names: tuple[str, ...]) -> dict[str, Any]:
    """`<trace>…</trace>`, also one that is not closed: it ends where the next one begins."""
    found: dict[str, Any] = {}
    for name in names:
        for known in _NAMES[name]:
            match = re.search(
                rf"<\s*{known}\s*>(.*?)(?:<\s*/?\s*[a-zéí_]+\s*>|\Z)",
                text,
                re.DOTALL | re.IGNORECASE,
            )
            if match:
                found[name] = match[1]
                break
    return found


def _in_lines(text: str, names: tuple[str, ...]) -> dict[str, Any]:
    """`Trace: …`, `**Title** …`, `## Precis` and what stands under it."""
    labels = {known: name for name in names for known in _NAMES[name]}
    every = {known for known_as in _NAMES.values() for known in known_as} | set(labels)
    label = re.compile(
        r"^[ \t>*_#\d.)-]*(" + "|".join(sorted(every, key=len, reverse=True)) + r")"
        r"(?:[ \t]*\([^)\n]*\))?[ \t]*(?:[*_]*[ \t]*[:=][ \t]*[*_]*|[*_]+[ \t]*|[ \t]*$)",
        re.IGNORECASE | re.MULTILINE,
    )
    marks = list(label.finditer(_FENCE.sub("", text)))
    text = _FENCE.sub("", text)
    found: dict[str, Any] = {}
    for place, mark in enumerate(marks):
        end = marks[place + 1].start() if place + 1 < len(marks) else len(text)
        name = labels.get(mark[1].lower())
        if name is not None and name not in found and text[mark.end() : end].strip():
            found[name] = text[mark.end() : end]
    return found


def _value(name: str, value: Any) -> Any:
    if name == "complexity":
        return _number(value)
    if isinstance(value, list):
        value = " ".join(one for one in value if isinstance(one, str))
    return _text(value) if isinstance(value, str) and _text(value) else None


def _text(value: str) -> str:
    """One line, without the marks that stood around it."""
    line = _WHITE.sub(" ", value).strip().removesuffix(",")
    if line[:1] in '"“' and line[-1:] in '"”' and line[1:-1].count('"') == 0:
        line = line[1:-1]
    line = _MARKS.sub("", line) if line[:1] in "*_#>`-" or line[-1:] in "*_`" else line
    return line.strip()


def _number(value: Any) -> float | None:
    """The complexity that is meant: a number from 0 to 4 is the nearest of the four."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        word = _MARKS.sub("", _WHITE.sub(" ", value)).strip().lower().rstrip(".")
        if word in _LEVELS:
            return _LEVELS[word]
        match = _NUMBER.search(word)
        value = float(match[0].replace(",", ".")) if match else None
    if not isinstance(value, int | float) or not 0 < value <= 4:
        return None
    return min((0.5, 1.0, 2.0, 3.0), key=lambda one: abs(one - value))
