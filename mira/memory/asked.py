"""What can be read from a phrase that something is looked for with: whose words, when, how many.

English is understood; a phrase in another language is searched all the same, only without this.
"""

from __future__ import annotations

import re
from datetime import date

import msgspec

from mira.memory.terms import terms
from mira.messages.content import Role

MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip

_MONTH = "|".join(f"{month}|{month[:3]}" if len(month) > 3 else month for month in MONTHS)
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_ISO = re.compile(r"\b((?:19|20)\d\d)-(\d{2})(?:-(\d{2}))?\b")
_DAY_MONTH = re.compile(rf"\b{_DAY}\s+(?:of\s+)?({_MONTH})\b", re.I)
_MONTH_DAY = re.compile(rf"\b({_MONTH})\.?\s+{_DAY}\b(?!\d)", re.I)
#: Three of the months are words too, unless a capital says otherwise.
_MONTH_ALONE = re.compile(
    rf"\b(?:{'|'.join(m for m in MONTHS if m not in ('may', 'march', 'august'))})\b|"
    r"\b(?:May|March|August)\b(?!\s+I\b)",
    re.I,
)
_YEAR = re.compile(r"\b((?:19|20)\d\d)\b")

_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|me|my|mine|myself|we|we've|us|our)\b", re.I)
_OF_ASSISTANT = re.compile(
    r"\b(?:did|have|had|were|are) you\b|\byou(?:'ve)? (?:recommend|suggest|advi|t[eo]l[ld]|sa[iy]|"
    r"explain|propos|g[ia]ve|mention|describ|list)|\byour (?:advice|suggest|recommend|answer|repl)",
    re.I,
)
_WANTS_TIME = re.compile(
    r"\b(?:when|how long|how soon|how many (?:days|weeks|months|years)|deadline|"
    r"(?:what|which) (?:date|day|month|year|time|week))\b",
    re.I,
)
_WANTS_NUMBER = re.compile(r"\bhow (?:many|much|often|old|far|big|tall)\b|\bnumber of\b", re.I)

_TIMED = re.compile(
    r"\b(?:yesterday|today|tomorrow|tonight|ago|weeks?|weekends?|months?|years?|days?|last|next|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|morning|evening|night|summer|winter|spring|"
    rf"autumn|fall|recently|soon|since|deadline|dates?|{'|'.join(MONTHS)}|\d{{4}}-\d\d-\d\d|"
    r"(?:19|20)\d\d)\b",
    re.I,
)
_COUNTED = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|dozens?|hundreds?|once|twice|"
    r"couple|several)\b",
    re.I,
)


#: What users are called who have not said how; in a question these are words like others.
_NO_NAMES = frozenset({"user", "me", "owner", "assistant", "admin", "root", "you", "the"})


class SaidDate(msgspec.Struct, frozen=True):
    """A date as far as it was named; at least one of month and year is there."""

    year: int | None = None
    month: int | None = None
    day: int | None = None


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A phrase, read."""

    phrase: str
    #: The phrase without the names of the two who talk: a name says who, and what is asked is
    #: nearer to what was said without it.
    content: str
    terms: tuple[str, ...]
    #: Whose words are wanted, if just one of the two is named.
    speaker: Role | None
    #: Whether the question is about what the assistant said, or else about who asks.
    own: bool
    of_assistant: bool
    wants_time: bool
    wants_number: bool
    date: SaidDate | None


def read(phrase: str, user: str, assistant: str) -> Asked:
    """Read a phrase, given how the user and the assistant are called in this conversation."""
    content = phrase
    named = set()
    for role, name in ((Role.USER, user), (Role.ASSISTANT, assistant)):
        for form in _forms(name):
            content, count = re.subn(rf"(?<!\w){re.escape(form)}(?:['’]s)?(?!\w)", "", content)
            if count:
                named.add(role)
    content = re.sub(r"\s+", " ", content).strip()
    of_assistant = bool(_OF_ASSISTANT.search(phrase))
    return Asked(
        phrase=phrase,
        content=content if terms(content) else phrase,
        terms=tuple(dict.fromkeys(terms(phrase))),
        speaker=named.pop() if len(named) == 1 else None,
        own=bool(_FIRST_PERSON.search(phrase)) and not of_assistant,
        of_assistant=of_assistant,
        wants_time=bool(_WANTS_TIME.search(phrase)),
        wants_number=bool(_WANTS_NUMBER.search(phrase)),
        date=said_date(phrase),
    )


def said_date(phrase: str) -> SaidDate | None:
    """The first date that a phrase names, as far as it does; None if there is none."""
    iso = _ISO.search(phrase)
    if iso and 1 <= int(iso.group(2)) <= 12:
        return SaidDate(int(iso.group(1)), int(iso.group(2)), int(iso.group(3) or 0) or None)
    year_said = _YEAR.search(phrase)
    year = int(year_said.group(1)) if year_said else None
    if found := _DAY_MONTH.search(phrase):
        return SaidDate(year, _month(found.group(2)), int(found.group(1)))
    if found := _MONTH_DAY.search(phrase):
        return SaidDate(year, _month(found.group(1)), int(found.group(2)))
    for found in _MONTH_ALONE.finditer(phrase):
        if found.group() not in ("may", "march", "august"):
            return SaidDate(year, _month(found.group()), None)
    return SaidDate(year) if year else None


def days_apart(said: SaidDate, day: date) -> int | None:
    """Days between a date named to the day and `day`; without a year the nearest one counts. None
    if no day, or none that there is, was named."""
    if said.day is None or said.month is None:
        return None
    apart = []
    for year in [said.year] if said.year else [day.year - 1, day.year, day.year + 1]:
        try:
            apart.append(abs((date(year, said.month, said.day) - day).days))
        except ValueError:
            continue
    return min(apart, default=None)


def in_month(said: SaidDate, day: date) -> bool:
    """Whether a day lies in the month that was named (and in its year, if one was)."""
    return said.month == day.month and said.year in (None, day.year)


def timed(text: str) -> bool:
    """Whether a text says when: a date, a weekday, "last week"."""
    return bool(_TIMED.search(text))


def counted(text: str) -> bool:
    """Whether a text says how many."""
    return bool(_COUNTED.search(text))


def _month(word: str) -> int:
    return next(i for i, month in enumerate(MONTHS, 1) if month.startswith(word[:3].lower()))


def _forms(name: str) -> list[str]:
    """A name, and its first word: people are called by it. Longer forms come first."""
    name = name.strip()
    first = name.split()[0] if name else ""
    forms = dict.fromkeys((name, first))
    return [form for form in forms if len(form) > 1 and form.casefold() not in _NO_NAMES]
