"""When two texts are the same fact.

Two texts that read alike, or mean nearly the same to a model, may still differ in the one word that
matters: a number, a name, a "not", "left" for "right", who owes whom. No model of meaning that is
small enough to run here sees that. A fact that would be lost is worse than one that stands twice
(integration looks at those), so a new text is a repetition only if the old one says it in as many
words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import datetime

from rapidfuzz import fuzz

from mira.memory.terms import fold, terms, words

#: From here on two normalised texts are one.
RATIO = 0.95
#: From here on two vectors are one fact.
SAME = 0.92
#: From here on two vectors are about the same thing.
NEAR = 0.85

#: Words that may come and go without changing what is said.
_FILLER_WORDS = """
    a an the this that these those there is are am be been being do does i you he she it we they
    and of very just so too also
"""
_FILLERS = frozenset(_FILLER_WORDS.split())
_NEGATIONS = frozenset(
    [
        "no", "not", "never", "none", "nobody", "nothing", "neither", "nor", "without",
        "stopped", "quit", "former",
    ]
)  # fmt: skip
#: What a contraction stands for, where that is no filler.
_CONTRACTIONS = (
    ("cannot", "can not"), ("can't", "can not"), ("won't", "will not"), ("shan't", "shall not"),
    ("n't", " not"), ("'ll", " will"), ("'d", " would"),
)  # fmt: skip
_SHORTENED = re.compile(r"'(?:s|m|re|ve)$")
_MINUS = re.compile(r"(?<![\w.,])[-\u2212](?=\d)")
#: Signs that say something, beside those that Unicode calls symbols.
_SIGNS = frozenset("#%&@")


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
    """Whether `new` says anything that `old` does not say in the same words and order.

    Inflections ("lives", "is living") and fillers do not count; the past does.
    """
    told, known = list(_told(new)), list(_told(old))
    return (
        not _within(told, known)
        or not _within(_signs(new), _signs(old))
        or _negations(told) % 2 != _negations(known) % 2
    )


def _within(part: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether `part` stands in `whole` without a gap."""
    length = len(part)
    starts = range(len(whole) - length + 1)
    return any(whole[at : at + length] == part for at in starts)


def _told(text: str) -> Iterator[str]:
    """What each word says, in order."""
    for written in words(text):
        for short, whole in _CONTRACTIONS:
            if written.endswith(short):
                written = written.removesuffix(short) + whole
                break
        for word in _SHORTENED.sub("", written).split():
            if word not in _FILLERS:
                yield _stem(word)


def _stem(word: str) -> str:
    found = terms(word)
    # What has no stem of its own (a function word, a pair of ideographs) stands for itself.
    stem = found[0] if len(found) == 1 else word
    return f"{stem}+ed" if word.endswith("ed") and stem != word else stem


def _signs(text: str) -> list[str]:
    signs = [c for c in text if c in _SIGNS or unicodedata.category(c) in ("So", "Sm", "Sc")]
    return signs + ["-"] * len(_MINUS.findall(text))


def _negations(told: Sequence[str]) -> int:
    return sum(word.removesuffix("+ed") in _NEGATED for word in told)


_NEGATED = frozenset(_stem(word).removesuffix("+ed") for word in _NEGATIONS)
