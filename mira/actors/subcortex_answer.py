"""What the Subcortex answered, read with care. Pure.

Models answer in JSON, in tags or in labelled lines, between fences and pleasantries, with fields
under other names. What can be understood is taken. Of ids only those count that were offered, and
what is not clearly straightforward is complex.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import json_repair
import msgspec

from mira.errors import ProviderMalformed
from mira.memory import answers
from mira.messages.subcortex import Complexity, InContext
from mira.messages.text import storable

#: How many phrases and names count, and how long one may be.
PHRASES, ENTITIES = 4, 10
LONGEST_PHRASE, LONGEST_NAME = 200, 80
#: Of a longer answer nothing is read.
LONGEST = 8_000

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "topic": ("topic", "subject", "main_topic"),
    "phrases": (
        "phrases", "phrase", "search_phrases", "queries", "query", "searches", "search", "also",
    ),
    "entities": ("entities", "entity", "names", "name", "named_entities"),
    "keep": ("keep", "kept", "retain", "retained", "ids", "memories"),
    "complexity": ("complexity", "difficulty", "kind"),
}  # fmt: skip
_NAME = {alias: field for field, aliases in _FIELDS.items() for alias in aliases}

_ID = re.compile(r"mem_[0-9a-f]{8}", re.IGNORECASE)
_TAG = re.compile(
    rf"<\s*({'|'.join(_NAME)})\b[^<>]*>(.*?)(?:<\s*/\s*\1\s*>|\Z)", re.DOTALL | re.IGNORECASE
)
_ANY_TAG = re.compile(r"<[^<>]{0,80}>")
_LABEL = re.compile(
    rf"^[\s>*_#\-\d.)]*({'|'.join(name.replace('_', '[ _]') for name in _NAME)})"
    r"[\s*_]*[:=]\s*(.*)$",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^\s*(?:[-*•–]|\d{1,2}[.)])\s+")
_BETWEEN = re.compile(r"[;|\n]")
_STRAIGHTFORWARD = re.compile(r"\b(?:straight[- ]?forward|simple)\b", re.IGNORECASE)
_COMPLEX = re.compile(r"\bcomplex\b|\bnot\b|\bisn't\b", re.IGNORECASE)
#: What models write where there is nothing.
_NOTHING = frozenset(
    {"none", "n/a", "na", "null", "nothing", "nil", "unknown", "no names", "empty", "…", "..."}
)
#: Words that stand for a name and are none.
_NO_NAMES = _NOTHING | {
    "i", "me", "you", "he", "him", "she", "her", "it", "we", "us", "they", "them", "this", "that",
    "user", "the user", "assistant", "the assistant",
}  # fmt: skip


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer says. At least one phrase is there."""

    phrases: tuple[str, ...]
    entities: tuple[str, ...] = ()
    retain: tuple[UUID, ...] = ()
    complexity: Complexity = Complexity.COMPLEX


def read(answer: str, offered: Sequence[InContext]) -> Reading | None:
    """What an answer says; None if it holds no phrase that can be searched for."""
    if len(answer) > LONGEST:
        return None
    answer = storable(answer)
    fields = _json(answer) or _tags(answer) or _lines(answer)
    phrases = _phrases([*_texts(fields.get("topic")), *_texts(fields.get("phrases"))])
    if not phrases:
        return None
    return Reading(
        phrases=phrases,
        entities=_names(_texts(fields.get("entities"))),
        retain=_offered(_texts(fields.get("keep")), offered),
        complexity=_complexity(_texts(fields.get("complexity"))),
    )


# The shapes of an answer: each gives its fields by our names, or none.


def _json(answer: str) -> dict[str, Any]:
    try:
        value = answers.read(answer).value
    except ProviderMalformed:
        return {}
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict) and (start := answer.find("{")) >= 0:
        # Cut off in the middle: what is whole of it serves as well.
        try:
            value = answers.decoded(json_repair.loads(answer[start:]))
        except (ValueError, RecursionError):
            return {}
    if not isinstance(value, dict):
        return {}
    if len(value) == 1 and isinstance(only := next(iter(value.values())), dict):
        value = only
    found: dict[str, Any] = {}
    for key, given in value.items():
        field = _NAME.get(str(key).strip().lower().replace(" ", "_").replace("-", "_"))
        if field is not None:
            found.setdefault(field, given)
    return found


def _tags(answer: str) -> dict[str, Any]:
    found: dict[str, list[str]] = {}
    for name, inside in _TAG.findall(answer):
        parts = [inside] if "<" not in inside else _ANY_TAG.sub("\n", inside).split("\n")
        found.setdefault(_NAME[name.lower()], []).extend(parts)
    return dict(found)


def _lines(answer: str) -> dict[str, Any]:
    found: dict[str, list[str]] = {}
    field = ""
    for line in answer.splitlines():
        if label := _LABEL.match(line):
            field = _NAME[label[1].lower().replace(" ", "_")]
            found.setdefault(field, []).append(label[2])
        elif field and _BULLET.match(line):
            found[field].append(line)
        elif line.strip():
            field = ""
    return dict(found)


# What stands in the fields.


def _texts(value: Any) -> list[str]:
    """The texts of a field, in whichever shape it came."""
    texts: list[str] = []
    for one in answers.many(value):
        if isinstance(one, dict):
            one = next((v for v in one.values() if isinstance(v, str)), "")
        if isinstance(one, str):
            texts += _BETWEEN.split(one)
    return texts


def _tidy(text: str, most: int) -> str:
    """A text without what lists, markup and quotes add to it; "" if nothing is left to read."""
    text = _BULLET.sub("", _ANY_TAG.sub(" ", text)).strip(" \t\"'`*_“”„«»,.:[]()")
    text = answers.words(text, most=most)
    return text if any(letter.isalnum() for letter in text) else ""


def _phrases(texts: Iterable[str]) -> tuple[str, ...]:
    tidied = (_tidy(text, LONGEST_PHRASE) for text in texts)
    return _each_once((t for t in tidied if t and t.lower() not in _NOTHING), PHRASES)


def _names(texts: Iterable[str]) -> tuple[str, ...]:
    parts = (part for text in texts for part in text.split(","))
    tidied = (_tidy(part, LONGEST_NAME) for part in parts)
    return _each_once((t for t in tidied if t and t.lower() not in _NO_NAMES), ENTITIES)


def _each_once(texts: Iterable[str], most: int) -> tuple[str, ...]:
    unique: dict[str, str] = {}
    for text in texts:
        unique.setdefault(text.casefold(), text)
    return tuple(unique.values())[:most]


def _offered(texts: Iterable[str], offered: Sequence[InContext]) -> tuple[UUID, ...]:
    known = {one.short_id: one.id for one in offered}
    named = (found.lower() for text in texts for found in _ID.findall(text))
    return tuple(dict.fromkeys(known[one] for one in named if one in known))


def _complexity(texts: Iterable[str]) -> Complexity:
    said = " ".join(texts)
    if _STRAIGHTFORWARD.search(said) and not _COMPLEX.search(said):
        return Complexity.STRAIGHTFORWARD
    return Complexity.COMPLEX
