"""From text to the terms that are searched: the same for what is stored and for what is asked.

`terms(text)` folds case, compatibility forms and Latin accents, cuts words apart, drops English
function words and stems the rest (Snowball). Runs of a script that is written without spaces
become overlapping pairs, and ideographs also stand alone. A number keeps its inner points
("5.3.0"), loses its separators of thousands ("4,500" is "4500") and its ordinal ending ("3rd").
The result is a pure function of the text, in the order of the text; it never raises.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise

import Stemmer  # type: ignore[import-not-found]

#: A longer word is no word (a key, a blob): it is cut here, so that a posting stays small.
LONGEST_TERM = 48

#: English words that say how, not what. Question words are among them: they are in every question.
_STOP_WORDS = """
    a about above after again against all also am an and any are as at be because been before being
    below between both but by can cannot could did do does doing down during each few for from
    further had has have having he her here hers herself him himself his how i if in into is it its
    itself just let me more most my myself no nor not now of off on once only or other our ours
    ourselves out over own please same shall she should so some such than that the their theirs them
    themselves then there these they this those through to too under until up us very was we were
    what when where which while who whom whose why will with would you your yours yourself
    yourselves s t d ll m re ve ca wo sha ai dont didnt im ive
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

#: First and last character of the scripts that are written without spaces between words.
_UNSPACED = (
    ("\u0e01", "\u0eff"),  # Thai, Lao
    ("\u1000", "\u109f"),  # Myanmar
    ("\u1780", "\u17ff"),  # Khmer
    ("\u3005", "\u3007"),
    ("\u3040", "\u30ff"),  # Hiragana, Katakana
    ("\u3400", "\u4dbf"),  # Ideographs, extension A
    ("\u4e00", "\u9fff"),  # Ideographs
    ("\uf900", "\ufaff"),
    ("\U00020000", "\U0003fffd"),
)
_IDEOGRAPH = re.compile(
    "[\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd]"
)


def _marks() -> str:
    """The combining marks of the basic plane, as ranges for a character class."""
    marks = [c for c in range(0x300, 0x10000) if unicodedata.category(chr(c)) in {"Mn", "Mc"}]
    ranges: list[list[int]] = []
    for code in marks:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"{chr(low)}-{chr(high)}" for low, high in ranges)


_IN_RUN = "".join(f"{low}-{high}" for low, high in _UNSPACED)
_LETTER = rf"[^\W_{_IN_RUN}]"
_TOKEN = re.compile(
    r"(?P<number>[a-z]?\d+(?:[.,:]\d+)+)"
    rf"|(?P<word>{_LETTER}(?:{_LETTER}|[{_marks()}])*(?:'{_LETTER}+)*)"
    rf"|(?P<run>[{_IN_RUN}]+)"
)
_THOUSANDS = re.compile(r",(?=\d{3}(?:\D|$))")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
#: "she's", "they've", "don't": what follows the apostrophe, with the n before a t.
_CONTRACTION = re.compile("n?'t$|'(?:s|d|m|ll|re|ve)$")
_ACCENT = re.compile("[\u0300-\u036f]")
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'", "\uff07": "'"})

_stemmer = Stemmer.Stemmer("english", 0)


def clean(text: str) -> str:
    """Text as it may be stored: no NUL, no lone surrogate, composed (NFC)."""
    kept = text.replace("\0", "").encode("utf-8", "ignore").decode("utf-8")
    return unicodedata.normalize("NFC", kept)


def fold(text: str) -> str:
    """Text as it is compared: clean, without case, compatibility forms and Latin accents."""
    if text.isascii():
        return text.replace("\0", "").lower()
    plain = unicodedata.normalize("NFKD", clean(text).casefold()).translate(_APOSTROPHES)
    return unicodedata.normalize("NFC", _ACCENT.sub("", plain))


def words(text: str) -> Iterator[str]:
    """The words of a text, folded, neither stemmed nor dropped; unspaced runs in pairs."""
    for match in _TOKEN.finditer(fold(text)):
        token = match.group()
        kind = match.lastgroup
        if kind == "word":
            yield token
        elif kind == "number":
            yield _THOUSANDS.sub("", token)
        else:
            yield from _pairs(token)


def terms(text: str) -> list[str]:
    """The terms of a text, in its order, repeated as often as they occur."""
    return [term for word in words(text) if (term := _term(word))]


def term_frequencies(text: str) -> Counter[str]:
    """How often each term occurs in a text; its `total()` is the length of the text."""
    return Counter(terms(text))


def unique_terms(texts: Iterable[str]) -> list[str]:
    """The terms of several texts, each once, in the order of their first occurrence."""
    seen: dict[str, None] = {}
    for text in texts:
        seen.update(dict.fromkeys(terms(text)))
    return list(seen)


def asks(text: str) -> bool:
    """Whether a text asks something."""
    return "?" in text or "\uff1f" in text or "\u061f" in text


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
        return
    for left, right in pairwise(run):
        if _IDEOGRAPH.match(left):
            yield left
        yield left + right
    if _IDEOGRAPH.match(run[-1]):
        yield run[-1]


@lru_cache(maxsize=50_000)
def _term(word: str) -> str:
    """The stem of a word; empty for a function word."""
    if "'" in word:
        word = _CONTRACTION.sub("", word)
    if word in STOP_WORDS:
        return ""
    ordinal = _ORDINAL.fullmatch(word)
    if ordinal:
        return ordinal.group(1)
    stem: str = _stemmer.stemWord(word[:LONGEST_TERM])
    return "" if stem in STOP_WORDS else sys.intern(stem)
