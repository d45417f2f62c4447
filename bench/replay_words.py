"""Words and sentences, for whoever answers and asks by rule."""

from __future__ import annotations

import re
from datetime import date

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9'’_.+#-]*[A-Za-z0-9+#]|\d")


def words_of(text: str) -> frozenset[str]:
    """The words between white space."""
    return frozenset(text.split())


_STOP = words_of(
    """a about after again all also am an and any are as at be because been before being between
    both but by can could did do does doing don't down during each few for from further get had has
    have having he her here hers him his how i i'd i'll i'm i've if in into is it it's its just kind
    kinda me more most my myself no nor not now of off on once one only or other our out over own
    same she should so some such than that that's the their them then there these they this those to
    too under until up us very was we were what when where which while who whom why will with would
    you your yours many much across"""
)
#: Where a wish ends and a question begins.
_ASKS = re.compile(
    r"[,;]?\s*\b(?:(?:so|and|but|then)\s+)?(?:can|could|would|will) you\b.*"
    r"|[,;]\s*(?:(?:so|and|but)\s+)?(?:how|what|which|where|when|why|should|do you|is there"
    r"|any)\b.*",
    re.IGNORECASE | re.DOTALL,
)
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_DATE = re.compile(rf"\b({'|'.join(MONTHS)}) (\d{{1,2}})(?:st|nd|rd|th)?,? (20\d\d)\b")
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_FIRST = re.compile(r"\b(?:I|I['’]\w+|my|we|our)\b")
#: From the first person to the third, in this order.
_OF_USER = (
    (r"\bI['’]m\b|\bI am\b", "the user is"),
    (r"\bI['’]ve\b|\bI have\b", "the user has"),
    (r"\bI['’]d\b", "the user would"),
    (r"\bI['’]ll\b", "the user will"),
    (r"\bI (want|need|prefer|like|use|plan|think|work|live|know|feel|hope|love|keep|get)\b",
     r"the user \1s"),
    (r"\bmy\b", "the user's"),
    (r"\bme\b|\bI\b", "the user"),
)  # fmt: skip


def content_words(text: str) -> list[str]:
    """The words of a text that name something, in lower case, in order."""
    words = (word.lower().replace("’", "'") for word in _WORD.findall(text))
    return [word for word in words if word not in _STOP and len(word) > 1]


def names(text: str) -> list[str]:
    """Words written with a capital inside of a sentence: more names than not."""
    found = re.findall(r"(?<=[a-z,] )[A-Z][A-Za-z0-9]+", _CODE.sub(" ", text))
    return list(dict.fromkeys(found))


def statements(text: str, most: int) -> list[str]:
    """What a message states of its writer, in its own words: clauses, without what is asked."""
    found = []
    for sentence in re.split(r"(?<=[.!?])\s+|\n+", _CODE.sub("\n", text)):
        clause = " ".join(_ASKS.sub("", sentence).split()).strip(" ,;:-")
        if len(clause.split()) >= 5 and len(clause) <= 400 and _FIRST.search(clause):
            found.append(clause.rstrip("?!. "))
    return found[:most]


def of_user(clause: str) -> str:
    """A clause in the first person, said of the user instead."""
    for pattern, instead in _OF_USER:
        clause = re.sub(pattern, instead, clause)
    return clause[:1].upper() + clause[1:]


def first_words(text: str, most: int) -> str:
    """How a message begins: words of its first sentence, without marks that end one."""
    sentence = re.split(r"(?<=[.!?])\s|\n", _CODE.sub("\n", text).strip() or text.strip())[0]
    words = sentence.split()[:most]
    return re.sub(r"[\"“”.!?…]+(?=\s|$)|[\"“”]", "", " ".join(words)).strip(" ,;:-")


def absolute(text: str) -> list[str]:
    """Dates that a text names in full, as ISO."""
    found = []
    for match in _DATE.finditer(text):
        try:
            day = date(int(match[3]), MONTHS.index(match[1]) + 1, int(match[2]))
        except ValueError:
            continue
        found.append(day.isoformat())
    return found
