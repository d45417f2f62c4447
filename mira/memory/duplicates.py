"""When two texts are the same fact.

Two texts that read alike may still differ in the one word that matters: a number, a name, a "not".
A fact that would be lost is worse than one that stands twice (integration looks at those), so a new
text with anything of that kind that the old one lacks is never taken for a repetition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from rapidfuzz import fuzz

from mira.memory.terms import STOP_WORDS, fold, words

#: From here on two normalised texts are one.
RATIO = 0.95
#: From here on two vectors are one fact.
SAME = 0.92
#: From here on two vectors are about the same thing.
NEAR = 0.85

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_NEGATIONS = frozenset(
    [
        "no", "not", "never", "none", "nobody", "nothing", "neither", "nor", "without", "cannot",
        "longer", "stopped", "quit", "former",
    ]
)  # fmt: skip


def normalised(text: str) -> str:
    """A text as it is compared: folded words and nothing between them."""
    return " ".join(words(text)) or fold(text).strip()


def ratio(one: str, other: str) -> float:
    """How alike two texts read, 0 to 1."""
    return fuzz.ratio(normalised(one), normalised(other), score_cutoff=RATIO * 100) / 100


def repeats(
    new: str, old: str, cosine: float, new_date: datetime | None, old_date: datetime | None
) -> bool:
    """Whether `new` says what `old` says, and nothing more."""
    if cosine < SAME and ratio(new, old) < RATIO:
        return False
    if new_date is not None and old_date is not None and new_date != old_date:
        return False
    return not says_more(new, old)


def says_more(new: str, old: str) -> bool:
    """Whether `new` holds a number, a name or a negation against `old`."""
    if _numbers(new) - _numbers(old) or _negations(new) % 2 != _negations(old) % 2:
        return True
    told, known = list(_words(new)), list(_words(old))
    said, there = {word for word, _, _ in told}, {word for word, _, _ in known}
    if {word for word, capital, first in told if capital and not first} - there - STOP_WORDS:
        return True
    # A capital at the beginning may be a name; it counts where another stands in its place.
    return bool(
        {word for word, capital, _ in told if capital} - there - STOP_WORDS
        and {word for word, capital, _ in known if capital} - said - STOP_WORDS
    )


def _numbers(text: str) -> set[str]:
    return set(_NUMBER.findall(text))


def _negations(text: str) -> int:
    return sum(w in _NEGATIONS or w.endswith("n't") for w in words(text))


def _words(text: str) -> Iterator[tuple[str, bool, bool]]:
    """Each word, folded, whether it has a capital, and whether it begins a sentence."""
    for sentence in _SENTENCE.split(text.strip()):
        for at, match in enumerate(_WORD.finditer(sentence)):
            word = match.group().replace("’", "'").removesuffix("'s")
            yield fold(word), word[0].isupper(), at == 0
