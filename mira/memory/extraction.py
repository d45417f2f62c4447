"""What is asked of a chunk of conversation, and what is understood of the answer.

Facts about the user come from the user's words alone. Each fact names the lines that it is from;
one that names only lines of the assistant is refused, as is one that merely says again what the
assistant had recalled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from mira.errors import ProviderMalformed
from mira.memory.answers import items, many, read, whole_number, words
from mira.memory.attribution import Attribution, pieces, seen_in
from mira.memory.chunks import Chunk, Line
from mira.memory.dates import moment
from mira.memory.duplicates import normalised
from mira.memory.forms import NUMBER, TEXT, TEXT_OR_NULL, choice, list_of, object_of
from mira.memory.quoting import quoted

#: Characters of a fact; of a bond, at most three words of it; facts of one chunk.
SHORTEST, LONGEST, BOND, MOST_FACTS = 10, 600, 60, 60
MOST_NAMES, MOST_REFERENCES = 12, 8
#: Names of this many memories at most are given to be referred to.
MOST_KNOWN = 40

TYPES = (
    "PERSON", "ORG", "GPE", "NORP", "FAC", "LOC", "PRODUCT", "EVENT", "WORK_OF_ART", "LAW",
    "LANGUAGE", "OTHER",
)  # fmt: skip
_SYNONYMS = {
    "PEOPLE": "PERSON", "PET": "PERSON", "ANIMAL": "PERSON", "ORGANIZATION": "ORG",
    "ORGANISATION": "ORG", "COMPANY": "ORG", "CITY": "GPE", "COUNTRY": "GPE", "STATE": "GPE",
    "PLACE": "LOC", "LOCATION": "LOC", "FACILITY": "FAC", "BUILDING": "FAC", "WORK": "WORK_OF_ART",
    "BOOK": "WORK_OF_ART", "FILM": "WORK_OF_ART", "NATIONALITY": "NORP", "RELIGION": "NORP",
}  # fmt: skip
_SHORT_ID = re.compile(r"mem_[0-9a-f]{8}", re.IGNORECASE)
#: What speaks to a model instead of about a person.
_COMMANDS = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:instructions?|prompts?|rules|guidelines)\b"
    r"|\bsystem prompt\b|\byou (?:are now|must (?:now|always|never)|should always)\b"
    r"|\b(?:do not|don't|never) (?:tell|inform|warn) the user\b|<\|im_|\[/?INST\]",
    re.IGNORECASE,
)


class Known(msgspec.Struct, frozen=True):
    """A memory that may be referred to."""

    short_id: str
    text: str


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """One fact, as it is to be stored."""

    text: str
    message_ids: tuple[UUID, ...]
    said_at: datetime
    #: (name, type)
    entities: tuple[tuple[str, str], ...] = ()
    happens_at: datetime | None = None
    expires_at: datetime | None = None
    #: (short id, bond)
    related: tuple[tuple[str, str], ...] = ()
    supersedes: tuple[str, ...] = ()
    #: (index among the facts that are kept, bond)
    hints: tuple[tuple[int, str], ...] = ()


class Extraction(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer came to. `refused` says of each item that was not taken why not."""

    facts: tuple[Fact, ...]
    refused: tuple[str, ...] = ()
    damaged: bool = False
    #: The end of the answer is missing: there may have been more.
    cut: bool = False


class ShownLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line as the template shows it."""

    number: int
    who: str
    at: str
    text: str
    recalled: str


def shown(chunk: Chunk, zone: ZoneInfo) -> tuple[tuple[ShownLine, ...], tuple[ShownLine, ...]]:
    """The lines before the chunk, and those of the chunk with the numbers they are named by."""
    earlier = tuple(_shown(0, line, zone) for line in chunk.before)
    return earlier, tuple(_shown(n, line, zone) for n, line in enumerate(chunk.lines, 1))


def _shown(number: int, line: Line, zone: ZoneInfo) -> ShownLine:
    return ShownLine(
        number=number,
        who="user" if line.by_user else "assistant",
        at=line.said_at.astimezone(zone).strftime("%A %Y-%m-%d %H:%M"),
        text=quoted(line.text),
        recalled=" ".join(line.recalled),
    )


def parse(
    text: str,
    chunk: Chunk,
    known: Sequence[Known],
    zone: ZoneInfo,
    *,
    others: Sequence[str] = (),
    cut: bool = False,
) -> Extraction:
    """Read a model's answer. Raises ProviderMalformed if nothing can be made of it.

    `others`: what tools and documents told in the conversation; nothing of it is a fact of the
    user's. `cut`: the provider says that the answer reached its length limit.
    """
    answer = read(text)
    found = items(answer.value, "memories", "text")
    reader = _Reader(chunk, known, zone, others)
    kept: list[tuple[int, Fact]] = []
    refused: list[str] = []
    seen: set[str] = set()
    for index, item in enumerate(found):
        outcome = reader.fact(item) if len(kept) < MOST_FACTS else "too many"
        if isinstance(outcome, Fact):
            # A model that repeats itself is no user who says it again.
            said = normalised(outcome.text)
            outcome = "twice" if said in seen else outcome
            seen.add(said)
        if isinstance(outcome, str):
            refused.append(outcome)
        else:
            kept.append((index, outcome))
    if found and not kept and not any(isinstance(item, Mapping | str) for item in found):
        raise ProviderMalformed('The list "memories" holds no objects.')
    return Extraction(
        facts=_renumbered(kept),
        refused=tuple(refused),
        damaged=answer.damaged,
        cut=cut or answer.cut,
    )


def _renumbered(kept: Sequence[tuple[int, Fact]]) -> tuple[Fact, ...]:
    """Hints point to places in the answer; here, to those of the facts that were kept."""
    place = {index: position for position, (index, _) in enumerate(kept)}
    return tuple(
        msgspec.structs.replace(
            fact,
            hints=tuple(
                (place[to], bond)
                for to, bond in dict(fact.hints).items()
                if to in place and place[to] != position
            ),
        )
        for position, (_, fact) in enumerate(kept)
    )


class _Reader:
    """Reads facts against the chunk that they are said to be from."""

    def __init__(
        self, chunk: Chunk, known: Sequence[Known], zone: ZoneInfo, others: Sequence[str]
    ) -> None:
        self._lines = chunk.lines
        self._known = {one.short_id for one in known}
        self._zone = zone
        self._attribution = Attribution(chunk, [one.text for one in known], others)

    def fact(self, item: Any) -> Fact | str:
        """A fact, or why it is none."""
        if isinstance(item, str):
            item = {"text": item}
        if not isinstance(item, Mapping):
            return "not an object"
        text = words(item.get("text"), most=LONGEST + 50)
        if len(text) < SHORTEST or not pieces(text):
            return "too short"
        if len(text) > LONGEST:
            return "too long"
        if _COMMANDS.search(text):
            return "an instruction, not a fact"
        source = self._source(item.get("lines", item.get("line")), text)
        if isinstance(source, str):
            return source
        said_at = max(line.said_at for line in source)
        happens_at = moment(item.get("happens_at"), self._zone)
        expires_at = moment(item.get("expires_at"), self._zone, end=True)
        if expires_at is not None and expires_at <= max(said_at, happens_at or said_at):
            # It would have been over before it was said, or before it begins: a slip of the model.
            expires_at = None
        return Fact(
            text=text,
            message_ids=tuple(line.message_id for line in source),
            said_at=said_at,
            entities=self._names(item.get("entities")),
            happens_at=happens_at,
            expires_at=expires_at,
            related=self._related(item.get("related")),
            supersedes=tuple(
                dict.fromkeys(
                    ref for one in many(item.get("supersedes")) if (ref := self._ref(one))
                )
            )[:MOST_REFERENCES],
            hints=self._hints(item.get("hints")),
        )

    def _source(self, given: Any, text: str) -> list[Line] | str:
        """The user's lines that a fact is from, or why it cannot be from them."""
        numbers = [n for one in many(given) if (n := whole_number(one)) is not None]
        named = [self._lines[n - 1] for n in dict.fromkeys(numbers) if 0 < n <= len(self._lines)]
        by_user = [line for line in named if line.by_user]
        if not numbers:
            # Not said where it is from: then it must be seen in what the user said.
            by_user = seen_in(text, self._lines)
        if not by_user:
            return "not from the user's words"
        return self._attribution.refused(text, by_user) or by_user

    def _names(self, given: Any) -> tuple[tuple[str, str], ...]:
        found: dict[str, tuple[str, str]] = {}
        for one in many(given):
            entity = {"name": one} if isinstance(one, str) else one
            if not isinstance(entity, Mapping):
                continue
            name = words(entity.get("name"), most=120)
            kind = words(entity.get("type"), most=40).upper().replace(" ", "_").replace("-", "_")
            kind = _SYNONYMS.get(kind, kind)
            if name and name.lower() not in ("user", "the user", "i", "me", "assistant"):
                found.setdefault(name.lower(), (name, kind if kind in TYPES else "OTHER"))
        return tuple(found.values())[:MOST_NAMES]

    def _ref(self, given: Any) -> str | None:
        """The known memory that is meant; others are not reached, whatever they are called."""
        if isinstance(given, Mapping):
            given = given.get("id")
        found = _SHORT_ID.search(given) if isinstance(given, str) else None
        return ref if found and (ref := found[0].lower()) in self._known else None

    def _related(self, given: Any) -> tuple[tuple[str, str], ...]:
        found: dict[str, str] = {}
        for one in many(given):
            if (ref := self._ref(one)) is not None:
                found.setdefault(ref, _bond(one))
        return tuple(found.items())[:MOST_REFERENCES]

    def _hints(self, given: Any) -> tuple[tuple[int, str], ...]:
        found: dict[int, str] = {}
        for one in many(given):
            index = whole_number(one.get("index") if isinstance(one, Mapping) else one)
            if index is not None:
                found.setdefault(index, _bond(one))
        return tuple(found.items())[:MOST_REFERENCES]


def _bond(given: Any) -> str:
    text = words(given.get("bond"), most=BOND) if isinstance(given, Mapping) else ""
    return " ".join(text.split(" ")[:3])


SCHEMA = json.dumps(
    object_of(
        memories=list_of(
            object_of(
                lines=list_of(NUMBER),
                text=TEXT,
                entities=list_of(object_of(name=TEXT, type=choice(*TYPES))),
                happens_at=TEXT_OR_NULL,
                expires_at=TEXT_OR_NULL,
                related=list_of(object_of(id=TEXT, bond=TEXT)),
                supersedes=list_of(TEXT),
                hints=list_of(object_of(index=NUMBER, bond=TEXT)),
            )
        )
    )
)
