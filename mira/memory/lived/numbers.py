"""Numbers in a text as values, however they are written: "3", "three", "1,200", "1.200", "5k"."""

from __future__ import annotations

import re
from functools import lru_cache

_ONES = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen",
    "de": "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn "
    "fünfzehn sechzehn siebzehn achtzehn neunzehn",
}
_TENS = {
    "en": "twenty thirty forty fifty sixty seventy eighty ninety",
    "de": "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
}
_OTHERS = {
    "dozen": 12, "dutzend": 12, "twice": 2, "thrice": 3, "zweimal": 2, "dreimal": 3, "half": 0.5,
    "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
    "tenth": 10, "twelfth": 12, "twentieth": 20, "dritte": 3, "dritten": 3, "vierte": 4,
    "vierten": 4, "fünfte": 5, "fünften": 5, "deux": 2, "trois": 3, "quatre": 4, "cinq": 5,
    "huit": 8, "neuf": 9, "dix": 10, "dos": 2, "tres": 3, "cuatro": 4, "cinco": 5, "siete": 7,
    "ocho": 8, "nueve": 9, "diez": 10, "due": 2, "tre": 3, "quattro": 4, "cinque": 5, "sette": 7,
    "otto": 8, "nove": 9, "dieci": 10, "both": 2, "pair": 2, "couple": 2, "fortnight": 14,
}  # fmt: skip
#: Words that are numbers now and then, and something else as often: of these none is demanded.
_ALSO_WORDS = frozenset(
    {"both", "pair", "couple", "half", "third", "due", "otto", "tre", "dos", "neuf"}
)
_WORDS: dict[str, float] = dict(_OTHERS)
for _words in _ONES.values():
    _WORDS |= {word: value for value, word in enumerate(_words.split())}
for _words in _TENS.values():
    _WORDS |= {word: 10 * value for value, word in enumerate(_words.split(), 2)}
_UNITS = {w: v for w, v in _WORDS.items() if w in " ".join(_ONES.values()).split() and 0 < v < 10}
_UNITS["ein"] = 1
_TENFOLD = {w: v for w, v in _WORDS.items() if w in " ".join(_TENS.values()).split()}
_SCALES = {
    "hundred": 100, "hundert": 100, "thousand": 1_000, "tausend": 1_000, "k": 1_000,
    "million": 1_000_000, "millions": 1_000_000, "millionen": 1_000_000, "m": 1_000_000,
    "billion": 1e9,
}  # fmt: skip

_FIGURES = re.compile(
    r"(?<![\w.])(?P<figures>\d+(?:[.,'’\u202f\u00a0 ]\d{3})+(?:[.,]\d+)?(?!\d)|\d+(?:[.,]\d+)?)"
    r"(?:\s?(?P<scale>k|m|million|millions|thousand|hundred|tausend|millionen|billion)\b)?"
    r"(?=$|[^\w]|st\b|nd\b|rd\b|th\b|[a-zA-Zµ°]{1,4}\b)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+")

#: A length of time in the units that it can also be said in.
_SPANS = {
    "second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800, "month": 2_629_746,
    "year": 31_556_952, "sekunde": 1, "minuten": 60, "stunde": 3_600, "tag": 86_400,
    "woche": 604_800, "monat": 2_629_746, "jahr": 31_556_952,
}  # fmt: skip
_SPAN = re.compile(
    r"(\d+(?:[.,]\d+)?|[^\W\d_]+)(?:[ -]and[ -]a[ -]half)?[ -](second|minute|hour|day|week|month"
    r"|year|sekunde|minuten|stunde|tag|woche|monat|jahr)",
    re.IGNORECASE,
)


def values(text: str) -> list[tuple[str, frozenset[float]]]:
    """The numbers in `text` in order: as they are written, and the values they can mean."""
    found: list[tuple[int, str, frozenset[float]]] = []
    for match in _FIGURES.finditer(text):
        scale = _SCALES.get((match["scale"] or "").lower(), 1)
        meant = frozenset(one * scale for one in _readings(match["figures"]))
        if match["scale"]:
            # "5 m" may be metres, and of "95 to 110 thousand" a source may have said "95 to 110".
            meant |= (
                _readings(match["figures"])
                if scale <= 1_000 or len(match["scale"]) == 1
                else frozenset()
            )
        found.append((match.start(), match[0].strip(), meant))
    found += _spelled(text)
    return [(written, meant) for _, written, meant in sorted(found, key=lambda one: one[0])]


def demanded(text: str) -> list[tuple[str, frozenset[float]]]:
    """Those of `values` that a source must have: without "one", and words that are seldom meant
    as numbers."""
    return [
        (written, meant)
        for written, meant in values(text)
        if written.lower() not in _ALSO_WORDS and not (written.isalpha() and meant == {1.0})
    ]


def known(text: str) -> set[float]:
    """Every value that a number of `text` can mean, lengths of time in other units too."""
    found = {value for _, meant in values(text) for value in meant}
    for match in _SPAN.finditer(text):
        word = match[1].lower()
        amounts = _readings(word) if word[0].isdigit() else {_amount(word)}
        unit = _SPANS[match[2].lower()]
        for amount in amounts - {0.0}:
            seconds = (amount + (0.5 if "half" in match[0].lower() else 0)) * unit
            found |= {float(round(seconds / other, 1)) for other in set(_SPANS.values())}
    return found


def _amount(word: str) -> float:
    if word in ("a", "an", "one", "ein", "eine", "einen", "einem", "einer"):
        return 1.0
    return float(_WORDS.get(word, 0.0))


def _readings(figures: str) -> frozenset[float]:
    """ "1.200" is 1.2 or 1200, "4,50" is 4.5: the point and the comma change places by country."""
    found = set()
    plain = re.sub(r"['’\u202f\u00a0 ]", "", figures)
    grouped = re.fullmatch(r"\d{1,3}(?:[.,]\d{3})+", plain)
    if grouped:
        found.add(float(re.sub(r"[.,]", "", plain)))
    parts = re.split(r"[.,]", plain)
    if len(parts) == 1:
        found.add(float(plain))
    elif len(parts) == 2:
        found.add(float(".".join(parts)))
    elif not grouped:
        found.add(float("".join(parts[:-1]) + "." + parts[-1]))
    return frozenset(found)


def _spelled(text: str) -> list[tuple[int, str, frozenset[float]]]:
    """Numbers in words: "forty-two", "two hundred and fifty", "zweiundvierzig"."""
    found: list[tuple[int, str, frozenset[float]]] = []
    words = [(m.start(), m[0]) for m in _WORD.finditer(text)]
    at = 0
    while at < len(words):
        start, word = words[at]
        value = _word(word)
        if value is None:
            at += 1
            continue
        written, taken = word, at + 1
        total = value
        while taken < len(words):
            following = words[taken][1].lower()
            joint = text[words[taken - 1][0] + len(words[taken - 1][1]) : words[taken][0]]
            if joint.strip(" -") or len(joint) > 2:
                break
            more = _word(following)
            if following in ("hundred", "thousand", "million") and total:
                total = total * _SCALES[following]
            elif (
                following == "and"
                and taken + 1 < len(words)
                and total >= 100
                and _word(words[taken + 1][1]) is not None
            ):
                taken += 1
                continue
            elif more is not None and _adds(total, more):
                total += more
            else:
                break
            written = text[start : words[taken][0] + len(words[taken][1])]
            taken += 1
        found.append((start, written, frozenset({float(total)})))
        at = taken
    return found


def _adds(total: float, more: float) -> bool:
    """Whether a number goes on with another: "forty" with "two", "two hundred" with "fifty"."""
    if 20 <= total % 100 <= 90 and total % 10 == 0:
        return 0 < more < 10
    return total >= 100 and total % 100 == 0 and 0 < more < 100


@lru_cache(maxsize=4096)
def _word(word: str) -> float | None:
    """The value of one word; None if it is no number."""
    lowered = word.lower()
    if lowered in _WORDS:
        return float(_WORDS[lowered])
    if (compound := re.fullmatch(r"(\w{3,6}?)und(\w{6,8})", lowered)) is not None:
        unit, ten = _UNITS.get(compound[1]), _TENFOLD.get(compound[2])
        if unit is not None and ten is not None:
            return float(unit + ten)
    for scale in ("hundert", "tausend"):
        if lowered.endswith(scale) and lowered[: -len(scale)] in ("", *_UNITS, "zehn"):
            lead = lowered[: -len(scale)]
            return float((_UNITS.get(lead) or (10 if lead else 1)) * _SCALES[scale])
    return None
