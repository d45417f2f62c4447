"""Which language a text is in, told by its script and its small words; no guess where unsure."""

from __future__ import annotations

import re
from collections import Counter

NAMES = {
    "en": "English", "de": "German", "fr": "French", "es": "Spanish", "it": "Italian",
    "pt": "Portuguese", "nl": "Dutch", "ru": "Russian", "el": "Greek", "ar": "Arabic",
    "he": "Hebrew", "ja": "Japanese", "ko": "Korean", "zh": "Chinese", "th": "Thai",
    "hi": "Hindi",
}  # fmt: skip

#: Frequent words that few of the other languages have.
_WORDS = {
    "en": "the and of to is was that with for my i you have this it on are but not me we they what "
    "about from so do can would how at he she his her had be will",
    "de": "der die das und ist nicht ich ein eine mit für auf dass wir mir mich sie war habe hat "
    "zu von auch wie was noch aber bei nach oder den dem im am es wenn sind kann",
    "fr": "le les et est une je que pour dans pas vous nous avec sur mais qui au du des ce cette "
    "mon ma elle il j'ai c'est être plus",
    "es": "el los y es una que para con por no se lo mi las del pero como está yo muy más qué al "
    "hay tengo este cuando sobre",
    "it": "il lo gli e è una che per con non mi sono del della di ma come ho anche questo più "
    "nel alla ti io perché",
    "pt": "o os e é uma que para com não eu do da em mas como meu minha você por mais está no na "
    "um ao também foi",
    "nl": "de het een en is niet ik van met voor dat op zijn maar wij je ook naar heb bij was er "
    "aan om te hij mijn",
}  # fmt: skip
_SMALL = {word: [] for words in _WORDS.values() for word in words.split()}  # type: dict[str, list[str]]
for _language, _words in _WORDS.items():
    for _word in _words.split():
        _SMALL[_word].append(_language)

_SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("ko", re.compile("[\uac00-\ud7af]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
    ("el", re.compile("[\u0370-\u03ff]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("he", re.compile("[\u0590-\u05ff]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
    ("hi", re.compile("[\u0900-\u097f]")),
)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
#: Characters that are looked at.
READ = 20_000
#: Small words that make a guess, and by how much the first must lead.
ENOUGH, LEAD = 3.0, 1.4


def guess(text: str) -> str | None:
    """The code of the language of `text`; None where it is too short, mixed, or of another one."""
    text = text[:READ]
    letters = sum(letter.isalpha() for letter in text)
    if not letters:
        return None
    for language, script in _SCRIPTS:
        share = len(script.findall(text)) / letters
        # Japanese is known by its kana, of which ideographs are no part.
        if share > (0.15 if language == "ja" else 0.4):
            return language
    counts: Counter[str] = Counter()
    for word in _WORD.findall(text.lower()):
        for language in _SMALL.get(word.replace("’", "'"), ()):
            counts[language] += 1
    ranked = counts.most_common(2)
    if not ranked or ranked[0][1] < ENOUGH:
        return None
    if len(ranked) > 1 and ranked[0][1] < LEAD * ranked[1][1]:
        return None
    return ranked[0][0]
