"""Names in a sentence, and whether a source has them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from mira.memory.entities import Mention
from mira.memory.lived.days import MONTHS, WEEKDAYS
from mira.memory.terms import STOP_WORDS

#: Languages in which a capital inside of a sentence makes a name; German gives one to every noun.
_CAPITALS = frozenset({"en", "fr", "es", "it", "pt", "nl"})
_TOKEN = re.compile(r"[^\W_]+(?:[.'’&-][^\W_]+)*")
#: "A380", "v2.1", "release-1.4.2", "10.0.0.1", addresses of mail: true only to the letter.
_CODE = re.compile(
    r"(?<![\w@.-])(?:[A-Za-z][\w-]*\d[\w.-]*\w|[A-Za-z]\d+|\d+(?:\.\d+){2,}|[\w.+-]+@[\w-]+\.[\w.]+)"
)
#: Who does something at the beginning of a sentence, where every word has a capital.
_SUBJECT = re.compile(
    r"^[\"“(]?([A-Z][^\W\d_]*[^\W\d_s])(?:['’]s)? (?:(?:then|also|now) )?(?:and (?:I|[A-Z]\w+)|is"
    r"|was|has|had|will|would|can|could|may|meant|said|told|took|went|came|gave|got|made|found|felt|thought"
    r"|knew|bought|sent|spoke|left|wrote|paid|met|kept|caught|[a-z]{2,}ed(?<!need)(?<!indeed)"
    r"|[a-z]{3,}[^su]s)\b"
)
#: Where a German noun is a name: after these without an article, after a title or a relation, and
#: as who does something at the beginning.
_GERMAN = re.compile(
    r"\b(?:(?:mit|von|bei|nach|in|aus|für|namens)\s+(?:(?:Frau|Herrn?|Dr\.|Prof\.)\s+)*"
    r"|(?:Frau|Herrn?)\s+(?:(?:Dr|Prof)\.\s+)*|(?:Dr|Prof)\.\s+"
    r"|(?:Tochter|Sohn|Bruder|Schwester|Mutter|Vater|Freund(?:in)?|Kolleg(?:e|in)|Hund|Katze"
    r"|Nachbar(?:in)?|Chef(?:in)?|Mann|Onkel|Tante|Oma|Opa)\s+)([A-ZÄÖÜ][\wäöüß-]+)"
    r"|^([A-ZÄÖÜ][\wäöüß-]+)(?=\s(?:hat|hatte|ist|war|will|wollte|kommt|macht|möchte|wird|wohnt"
    r"|arbeitet|sagte|fragte|braucht|geht|isst|und ich)\b)"
)
_NO_NAMES = frozenset((
    "hause", "ruhe", "freude", "zukunft", "zeit", "wirklichkeit", "zusammenarbeit", "hilfe",
    "bezug", "summe", "ordnung", "eile", "form", "richtung", "vorbereitung", "planung", "rente",
    "pension", "fragen", "beginn", "ende", "kraft", "betrieb",
))  # fmt: skip
_TITLES = frozenset((
    "mr", "mrs", "ms", "dr", "prof", "sir", "madam", "st", "frau", "herr", "herrn", "er", "sie",
    "es", "das", "dies", "i", "i'm", "i've", "i'd", "i'll", "ok", "tv", "mira", "am", "pm", "uhr",
))  # fmt: skip


def named(sentence: str, entities: Sequence[Mention], language: str | None) -> list[str]:
    """The names in a sentence of a summary, each once. `entities`: those that were recognised."""
    found: dict[str, None] = {}
    tokens = list(_TOKEN.finditer(sentence))
    if language in _CAPITALS or language is None:
        for place, token in enumerate(tokens):
            before = sentence[: token.start()].rstrip()
            begins = place == 0 or before.endswith((":", "“", '"', "(", "–", "—"))
            if token[0][0].isupper() and not begins and _is_name(token[0]):
                found.setdefault(token[0])
    if language in ("en", None):
        if (subject := _SUBJECT.match(sentence)) is not None and _is_name(subject[1]):
            found.setdefault(subject[1])
        for entity in entities:
            for token in _TOKEN.finditer(entity.name):
                if token[0][0].isupper() and _is_name(token[0]):
                    found.setdefault(token[0])
    if language == "de":
        for match in _GERMAN.finditer(sentence):
            name = match[1] or match[2]
            if _is_name(name) and name.lower() not in _NO_NAMES:
                found.setdefault(name)
    for match in _CODE.finditer(sentence):
        found.setdefault(match[0])
    return list(found)


def _is_name(token: str) -> bool:
    word = _plain(token)
    return (
        len(word) > 1
        and any(letter.isalpha() for letter in word)
        and word not in STOP_WORDS
        and word not in _TITLES
        and word not in MONTHS
        and word not in WEEKDAYS
        and word.removesuffix("s") not in WEEKDAYS
    )


class Names:
    """The words of a source."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._words: set[str] = set()
        #: The first letters of the words of each text, in order: "United Kingdom" has "uk".
        self._initials: list[str] = []
        self._codes: set[str] = set()
        plain: dict[str, str] = {}
        for text in texts:
            tokens = _TOKEN.findall(text)
            for token in tokens:
                if token not in plain:
                    plain[token] = _plain(token)
            self._initials.append("".join([plain[token][:1] for token in tokens]))
            self._codes.update(match[0].lower() for match in _CODE.finditer(text))
        for word in plain.values():
            self._words.add(word)
            self._words.update(_parts(word))
        self._beginnings = {word[:-1] for word in self._words if len(word) > 4}
        self._beginnings |= {word[:-2] for word in self._words if len(word) > 5}

    def has(self, name: str) -> bool:
        """Whether a name is there, in another case or number, or as the words it abbreviates."""
        word = _plain(name)
        if _CODE.fullmatch(name):
            return name.lower() in self._codes or word in self._words
        if self._has(word):
            return True
        if name.isupper() and len(word) > 1 and any(word in one for one in self._initials):
            return True
        parts = _parts(word)
        return len(parts) > 1 and all(self._has(part) or part in STOP_WORDS for part in parts)

    def _has(self, word: str) -> bool:
        if word in self._words or word in self._beginnings:
            return True
        # "Annas", "Viennese" beside "Vienna": an ending of one or two letters more.
        return len(word) > 4 and (word[:-1] in self._words or word[:-2] in self._words)


def _parts(word: str) -> list[str]:
    return [part for part in re.split(r"[.'&-]", word) if part]


def _plain(word: str) -> str:
    """Without case, accents and a possessive ending."""
    folded = unicodedata.normalize("NFD", word.replace("’", "'").casefold())
    bare = "".join(letter for letter in folded if not unicodedata.combining(letter))
    return bare.removesuffix("'s").removesuffix("'")
