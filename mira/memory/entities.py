"""Names: how they are compared, and which of them may be the same thing twice."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, TypeVar

import msgspec
from rapidfuzz import fuzz

from mira.memory.terms import clean

#: What an entity can be. OTHER is what fits nowhere else.
TYPES = (
    *("PERSON", "ORG", "GPE", "NORP", "FAC", "LOC", "PRODUCT", "EVENT", "WORK_OF_ART"),
    *("LAW", "LANGUAGE", "OTHER"),
)

#: From which likeness on two names of a type are proposed for merging.
ALIKE = 0.85

Id = TypeVar("Id", bound=Hashable)

_ARTICLE = re.compile(r"^(?:the|an?)\s+(?=\S)")
#: At the end of any word: "Anna's", "the Johnsons'"; after the apostrophes are made alike.
_POSSESSIVE = re.compile(r"(?:'s|(?<=s)')(?=\s|$)")
_APOSTROPHES = str.maketrans("’‘ʼ＇`´", "''''''")
#: What may stand around a name without being part of it.
_AROUND = " \t\n\"'“”„«»()[]{}<>,;:!?*_~|"


class Mention(msgspec.Struct, frozen=True):
    """A name found in a text, as it stands there, and what it is the name of (one of TYPES)."""

    name: str
    type: str


class Named(msgspec.Struct, Generic[Id], frozen=True):
    """An entity as far as its likeness to others goes."""

    id: Id
    name: str
    type: str


def normalise(name: str) -> str:
    """The form in which names are compared: two with the same form are the same name.

    Without case, accents, leading articles, a possessive 's, what stands around it, and runs of
    blanks. Idempotent. Empty for what holds no letter, figure or sign of its own.
    """
    text = clean(name).translate(_APOSTROPHES).casefold()
    while True:
        before = text
        text = _without_accents(text)
        text = " ".join(text.split()).strip(_AROUND)
        text = _ARTICLE.sub("", _POSSESSIVE.sub("", text))
        if text == before:
            return text


def _without_accents(text: str) -> str:
    """Without the marks that may be left off: those of Latin, Greek and Cyrillic letters.

    In other scripts a mark is part of the letter (vowels of Hindi, the voiced kana).
    """
    kept: list[str] = []
    bare = False
    for character in unicodedata.normalize("NFD", text):
        if unicodedata.combining(character):
            if not bare:
                kept.append(character)
            continue
        bare = character < "\u0530" or "\u1e00" <= character < "\u2000"
        kept.append(character)
    return unicodedata.normalize("NFC", "".join(kept)).casefold()


def likeness(one: str, other: str) -> float:
    """How alike two normalised names are, from 0 to 1, whatever the order of their words.

    Names that differ in their figures are not alike: flat 12 is not flat 13.
    """
    if _figures(one) != _figures(other):
        return 0.0
    return max(fuzz.ratio(one, other), fuzz.token_sort_ratio(one, other)) / 100


def _figures(name: str) -> list[str]:
    return re.findall(r"\d+", name)


def merge_proposals(
    entities: Iterable[Named[Id]],
    *,
    threshold: float = ALIKE,
    alike: Iterable[tuple[Id, Id]] = (),
) -> list[tuple[Id, ...]]:
    """Groups of entities that may be one: same type, connected by likeness ≥ `threshold`.

    `alike` are further pairs, found in other ways (by their vectors); only those of one type
    count. Groups and their members are in the order of `entities`; each has two or more. The time
    grows with the square of the entities of a type (a second for 5,000): not on the event loop.
    """
    ordered = list(entities)
    place = {entity.id: index for index, entity in enumerate(ordered)}
    groups = _Groups(len(ordered))
    by_type: defaultdict[str, list[int]] = defaultdict(list)
    for index, entity in enumerate(ordered):
        by_type[entity.type].append(index)
    for members in by_type.values():
        names = [normalise(ordered[index].name) for index in members]
        for a, b in _alike(names, threshold):
            groups.join(members[a], members[b])
    for one, other in alike:
        if one in place and other in place:
            a, b = place[one], place[other]
            if ordered[a].type == ordered[b].type:
                groups.join(a, b)
    return [tuple(ordered[index].id for index in group) for group in groups.found()]


def _alike(names: Sequence[str], threshold: float) -> Iterable[tuple[int, int]]:
    """Pairs of places whose names are alike enough."""
    figures = [_figures(name) for name in names]
    sorted_words = [" ".join(sorted(name.split())) for name in names]
    least = threshold * 100
    for a, name in enumerate(names):
        for b in range(a + 1, len(names)):
            if not name or not names[b] or figures[a] != figures[b]:
                continue
            if (
                fuzz.ratio(name, names[b], score_cutoff=least) >= least
                or fuzz.ratio(sorted_words[a], sorted_words[b], score_cutoff=least) >= least
            ):
                yield a, b


class _Groups:
    """Connected components, each found under its first member."""

    def __init__(self, size: int) -> None:
        self._first = list(range(size))

    def join(self, a: int, b: int) -> None:
        a, b = self._find(a), self._find(b)
        self._first[max(a, b)] = min(a, b)

    def found(self) -> list[list[int]]:
        """The groups of more than one."""
        members: defaultdict[int, list[int]] = defaultdict(list)
        for index in range(len(self._first)):
            members[self._find(index)].append(index)
        return [group for group in members.values() if len(group) > 1]

    def _find(self, index: int) -> int:
        while self._first[index] != index:
            self._first[index] = self._first[self._first[index]]
            index = self._first[index]
        return index
