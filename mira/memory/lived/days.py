"""Dates and times of day in a text: those that are written out, and those that relative words
mean on the day on which they were said."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta

import msgspec

_MONTHS = (
    ("january", "januar", "jänner", "janvier", "enero", "gennaio", "jan"),
    ("february", "februar", "feber", "février", "febrero", "febbraio", "feb"),
    ("march", "märz", "mars", "marzo", "mar", "mär"),
    ("april", "avril", "abril", "aprile", "apr"),
    ("may", "mai", "mayo", "maggio"),
    ("june", "juni", "juin", "junio", "giugno", "jun"),
    ("july", "juli", "juillet", "julio", "luglio", "jul"),
    ("august", "août", "agosto", "aug"),
    ("september", "septembre", "septiembre", "settembre", "sept", "sep"),
    ("october", "oktober", "octobre", "octubre", "ottobre", "oct", "okt"),
    ("november", "novembre", "noviembre", "nov"),
    ("december", "dezember", "décembre", "diciembre", "dicembre", "dec", "dez"),
)
MONTHS = {name: number for number, names in enumerate(_MONTHS, 1) for name in names}
_WEEKDAYS = (
    ("monday", "montag", "mon"), ("tuesday", "dienstag", "tue", "tues"),
    ("wednesday", "mittwoch", "wed"), ("thursday", "donnerstag", "thu", "thurs"),
    ("friday", "freitag", "fri"), ("saturday", "samstag", "sonnabend", "sat"),
    ("sunday", "sonntag", "sun"),
)  # fmt: skip
WEEKDAYS = {name: number for number, names in enumerate(_WEEKDAYS) for name in names}
#: "may" is a word as well, as are a few short forms; they are a month only beside a day or a year.
_NAMES = "|".join(sorted(MONTHS, key=len, reverse=True))
#: Alone they are a month with a capital.
_LONE = "|".join(name.capitalize() for name in MONTHS if len(name) > 3 or name == "mai")
_YEAR = r"(?:19|20)\d\d"
_IN_FIGURES = (
    re.compile(rf"(?<!\d)(?P<y>{_YEAR})[-/.](?P<m>\d{{1,2}})[-/.](?P<d>\d{{1,2}})(?!\d)"),
    re.compile(
        rf"(?<![\d.])(?P<a>\d{{1,2}})(?P<sep>[./])(?P<b>\d{{1,2}})(?P=sep)(?P<y>{_YEAR}|\d\d)?(?!\d)"
    ),
)
_WITH_MONTHS = (
    re.compile(
        rf"(?<!\d)(?P<d>\d{{1,2}})(?:st|nd|rd|th|\.)?(?:\s+(?:of|de|di)\s+|\s+|-)(?P<name>{_NAMES})\b\.?"
        rf"(?:,?\s+(?:de\s+)?(?P<y>{_YEAR}))?",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b(?P<name>{_NAMES})\b\.?\s+(?:the\s+)?(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:])"
        rf"(?:,?\s+(?P<y>{_YEAR}))?",
        re.IGNORECASE,
    ),
    re.compile(rf"\b(?P<name>{_NAMES})\b\.?,?\s+(?:of\s+|de\s+)?(?P<y>{_YEAR})\b", re.IGNORECASE),
    re.compile(rf"\b(?P<name>{_LONE})\b"),
)
_LONE_YEAR = re.compile(rf"(?<![\d.,/-])(?P<y>{_YEAR})(?![\d/-]|[.,]\d)")
_ORDINAL = re.compile(
    r"\bthe (\d{1,2})(?:st|nd|rd|th)\b(?! of)|\b(?:am|vom|zum|bis|ab|den|dem) (\d{1,2})\.(?=\s|$|,)"
    rf"(?!\s*(?:{_NAMES})\b)",
    re.IGNORECASE,
)
_FIGURE, _WORD = re.compile(r"\d"), re.compile(r"[^\W\d_]+")
_NOON = re.compile(r"noon|mid(?:day|night)|mittag|mitternacht", re.IGNORECASE)
_TIMES = re.compile(
    r"(?<![\d:.])(?P<h>[01]?\d|2[0-3])(?:(?::|\.|h)(?P<min>[0-5]\d)(?!\d|\.\d))"
    r"\s*(?P<half>[ap]\.?\s?m\b\.?)?(?:\s*Uhr)?"
    r"|(?<![\d:.,])(?P<h2>[01]?\d|2[0-3])\s*(?P<half2>[ap]\.?\s?m\b\.?|o['’]clock|Uhr\b)"
    r"|\b(?P<noon>noon|midday|midnight|Mittag|Mitternacht)\b",
    re.IGNORECASE,
)


class Day(msgspec.Struct, frozen=True):
    """A date as far as it is said: any part may be missing."""

    year: int | None = None
    month: int | None = None
    day: int | None = None


class Dated(msgspec.Struct, frozen=True):
    """What of a text are dates and times of day (minutes since midnight, both halves of the day
    where it is not said which), as they are written; and the text without them."""

    days: tuple[tuple[str, tuple[Day, ...]], ...]
    times: tuple[tuple[str, frozenset[int]], ...]
    rest: str


def dated(text: str) -> Dated:
    """Find the dates and times that are written out."""
    days: list[tuple[str, tuple[Day, ...]]] = []
    times: list[tuple[str, frozenset[int]]] = []
    rest = text
    figures = _FIGURE.search(text) is not None
    if figures:
        for pattern in _IN_FIGURES:
            rest = _taken(pattern, rest, days)
    if figures or _NOON.search(text):
        rest = _TIMES.sub(lambda m: _time(m, times), rest)
    # Most texts name no month: to see that is cheaper than to look for dates.
    if any(word in MONTHS for word in _WORD.findall(text.lower())):
        for pattern in _WITH_MONTHS:
            rest = _taken(pattern, rest, days)
    if figures:
        rest = _taken(_LONE_YEAR, rest, days)
    return Dated(tuple(days), tuple(times), rest)


def meant(text: str, said: date) -> Iterator[Day]:
    """The days that relative words of `text` can mean if it was said on the day `said`."""
    lowered = text.lower()
    for word in set(_NEAR.findall(lowered)):
        yield _of(said + timedelta(_OFF[word.replace("’", "'")]))
    for match in _AWAY.finditer(lowered):
        amount = _AMOUNTS.get(match["n"]) or (int(match["n"]) if match["n"].isdigit() else 0)
        unit = match["unit"]
        sign = -1 if match["ago"] or match["before"] else 1
        if 0 < amount < 4_000:
            yield from _moved(said, sign * amount, unit)
    for match in _SIDE.finditer(lowered):
        sign = -1 if match["side"] in _PAST else 0 if match["side"] in _THIS else 1
        yield from _moved(said, sign, match["unit"])
    days = {WEEKDAYS[name] for name in _WEEKDAY.findall(lowered)}
    if re.search(r"\b(?:weekend|wochenende)\b", lowered):
        days |= {5, 6}
    later = re.search(r"\b(?:next|following|nächste[nrsm]?|kommende[nrsm]?)\b", lowered) is not None
    for number in days:
        ahead = (number - said.weekday()) % 7
        # The last or the coming one; the one after that if it is the next, or today is one.
        for weeks in (-7, 0, 7) if later or ahead == 0 else (-7, 0):
            yield _of(said + timedelta(ahead + weeks))


def ordinals(text: str) -> set[int]:
    """Days of a month that are said without it: "on the 21st", "am 21."."""
    return {int(match[1] or match[2]) for match in _ORDINAL.finditer(text)}


def is_covered(claim: Day, by: Day) -> bool:
    """Whether a date is the same as another as far as both say; a part alone covers no more."""
    for mine, theirs in ((claim.month, by.month), (claim.day, by.day)):
        if mine is not None and mine != theirs:
            return False
    return claim.year is None or by.year is None or claim.year == by.year


_OFF = {
    "today": 0, "tonight": 0, "this morning": 0, "this afternoon": 0, "this evening": 0,
    "yesterday": -1, "last night": -1, "tomorrow": 1, "day after tomorrow": 2,
    "day before yesterday": -2, "heute": 0, "gestern": -1, "vorgestern": -2, "morgen": 1,
    "übermorgen": 2, "aujourd'hui": 0, "hier": -1, "demain": 1, "hoy": 0, "ayer": -1,
    "mañana": 1, "oggi": 0, "ieri": -1, "domani": 1,
}  # fmt: skip
_NEAR = re.compile(
    r"\b(" + "|".join(sorted(_OFF, key=len, reverse=True)).replace("'", "['’]") + r")\b"
)
_WEEKDAY = re.compile(
    r"\b(" + "|".join(name for name in WEEKDAYS if len(name) > 3 or name == "sat") + r")s?\b"
)
_AMOUNTS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "einem": 1, "einer": 1, "zwei": 2, "drei": 3, "vier": 4,
    "fünf": 5, "sechs": 6, "sieben": 7, "acht": 8, "neun": 9, "zehn": 10, "couple of": 2,
}  # fmt: skip
_UNIT = r"(?P<unit>days?|weeks?|months?|years?|fortnight|tage?n?|wochen?|monate?n?|jahre?n?)"
_AWAY = re.compile(
    rf"(?P<before>\bvor\s+)?\b(?:in\s+)?(?P<n>\d{{1,4}}|{'|'.join(_AMOUNTS)})\s+{_UNIT}\b(?P<ago>\s+ago)?"
)
_PAST = ("last", "past", "letzte", "letzten", "letztes", "vorige", "vorigen", "voriges")
_THIS = ("this", "diese", "diesen", "dieses", "diesem")
_SIDE = re.compile(
    rf"\b(?P<side>{'|'.join((*_PAST, *_THIS))}|next|coming|nächste[nms]?|kommende[nms]?)\s+"
    r"(?P<unit>week|month|year|woche|monat|jahr)\b"
)


def _of(day: date) -> Day:
    return Day(day.year, day.month, day.day)


def _moved(said: date, amount: int, unit: str) -> Iterator[Day]:
    """The days that lie so many units away: weeks mean each of their days, months the month."""
    try:
        if unit.startswith(("day", "tag")):
            yield _of(said + timedelta(amount))
        elif unit.startswith(("week", "woche", "fortnight")):
            weeks = 2 * amount if unit == "fortnight" else amount
            yield _of(said + timedelta(7 * weeks))
            monday = said - timedelta(said.weekday()) + timedelta(7 * weeks)
            yield from (_of(monday + timedelta(off)) for off in range(7))
        elif unit.startswith(("month", "monat")):
            months = said.year * 12 + said.month - 1 + amount
            yield Day(months // 12, months % 12 + 1, said.day)
        else:
            yield Day(said.year + amount)
            yield Day(said.year + amount, said.month, said.day)
    except (OverflowError, ValueError):
        return


def _taken(pattern: re.Pattern[str], text: str, found: list[tuple[str, tuple[Day, ...]]]) -> str:
    def take(match: re.Match[str]) -> str:
        readings = tuple(_readings(match.groupdict()))
        if not readings:
            return match[0]
        found.append((match[0].strip(" ,."), readings))
        return " " * len(match[0])

    return pattern.sub(take, text)


def _readings(parts: dict[str, str | None]) -> Iterator[Day]:
    given = parts.get("y")
    year = int(given) + (2000 if len(given) == 2 else 0) if given else None
    if parts.get("a") and parts.get("b"):
        # Which is the month depends on the country.
        one, two = int(parts["a"] or 0), int(parts["b"] or 0)
        pairs = {(two, one)} | ({(one, two)} if parts.get("sep") == "/" else set())
        yield from (
            Day(year, m, d) for m, d in sorted(pairs) if m in range(1, 13) and d in range(1, 32)
        )
        return
    name = parts.get("name")
    month = MONTHS[name.lower()] if name else int(parts["m"] or 0) if parts.get("m") else None
    day = int(parts["d"] or 0) if parts.get("d") else None
    if (month is None or month in range(1, 13)) and (day is None or day in range(1, 32)):
        yield Day(year, month, day)


def _time(match: re.Match[str], found: list[tuple[str, frozenset[int]]]) -> str:
    noon = (match["noon"] or "").lower()
    if noon:
        minute = 0 if noon in ("midnight", "mitternacht") else 720
        found.append((match[0], frozenset({minute})))
        return " " * len(match[0])
    hour, minute = int(match["h"] or match["h2"]), int(match["min"] or 0)
    half = (match["half"] or match["half2"] or "").lower()
    if half.startswith(("a", "p")) and hour <= 12:
        hours = {hour % 12 + (12 if half.startswith("p") else 0)}
    elif hour <= 12 and (match["h2"] or len(match["h"] or "") == 1):
        hours = {hour % 24, (hour + 12) % 24}
    else:
        hours = {hour}
    if match["min"] and "." in match[0] and not half and "uhr" not in match[0].lower():
        # "3.50" is a price as often as a time.
        return match[0]
    found.append((match[0].strip(), frozenset(h * 60 + minute for h in hours)))
    return " " * len(match[0])


def minutes(at: datetime) -> int:
    """The minute of the day."""
    return at.hour * 60 + at.minute
