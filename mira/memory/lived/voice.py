"""Whether a text is told as a memory is: in the first person, with absolute dates, and at all.

The reasons are written for the model that is asked again.
"""

from __future__ import annotations

import re

from mira.memory.lived.language import NAMES, guess
from mira.memory.lived.sentences import sentences

#: Words that mean another day to whoever reads them later.
_RELATIVE = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|nowadays"
    r"|(?:last|next|this|coming|past) (?:night|morning|afternoon|evening|day|week|weekend|month"
    r"|quarter|year|spring|summer|autumn|fall|winter|(?:mon|tues|wednes|thurs|fri|satur|sun)day)s?"
    r"|(?:a|an|one|two|three|four|five|six|seven|ten|a few|several|some|\d+) "
    r"(?:minute|hour|day|week|month|year)s? ago|(?:earlier|later) (?:today|this|tonight)"
    r"|the other day|just now|right now|a moment ago"
    r"|gestern|vorgestern|heute|morgen (?:früh|abend|mittag|vormittag|nachmittag)|übermorgen"
    r"|(?:bis|für|ab|von|auf) morgen"
    r"|(?:letzte|vorige|vergangene|nächste|kommende|diese)[nmrs]? (?:nacht|tage?|woche|wochenende"
    r"|monat|jahr|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch)"
    r"|vor (?:einer|einem|zwei|drei|vier|ein paar|einigen|wenigen|\d+) "
    r"(?:minuten?|stunden?|tag(?:en)?|wochen?|monat(?:en)?|jahr(?:en)?)|neulich|vorhin"
    r"|hier|avant-hier|aujourd['’]hui|demain|la semaine (?:dernière|prochaine)"
    r"|ayer|anteayer|hoy|la semana (?:pasada|que viene)|ieri|oggi|domani"
    r"|la settimana (?:scorsa|prossima)|ontem|hoje|amanhã|gisteren|vandaag)\b"
    r"|昨日|今日|明日|昨天|今天|明天|вчера|сегодня|завтра",
    re.IGNORECASE,
)
#: Whose word `hier` is, a German reader would say otherwise.
_ONLY_IN = {"hier": "fr", "hoy": "es", "demain": "fr", "ieri": "it", "oggi": "it", "vandaag": "nl"}
_QUOTED = re.compile(r"[\"“„«][^\"“”„«»]{1,200}[\"”“»]|(?<!\w)'[^'\n]{2,80}'(?!\w)")

_FIRST = {
    "en": r"\b(?:I|I['’]\w+|me|my|mine|myself|we|us|our|ours)\b",
    "de": r"\b(?:ich|mich|mir|mein\w*|wir|uns|unser\w*)\b",
    "fr": r"\b(?:je|me|moi|mon|ma|mes|nous|notre|nos)\b|\b[jm]['’]",
    "es": r"\b(?:yo|me|mi|mis|mí|conmigo|nosotr[oa]s|nos|nuestr\w+|\w+(?:é|í|amos|imos|emos))\b",
    "it": r"\b(?:io|mi|me|mio|mia|miei|noi|ci|nostr\w+|ho|abbiamo|sono)\b",
    "pt": r"\b(?:eu|me|mim|meu|minha|comigo|nós|nos|noss\w+|\w+(?:ei|amos|emos|imos))\b",
    "nl": r"\b(?:ik|me|mij|mijn|wij|we|ons|onze)\b",
}  # fmt: skip
_FIRST_PERSON = {language: re.compile(p, re.IGNORECASE) for language, p in _FIRST.items()}
_ASSISTANT = re.compile(
    r"\b(?:the|an?|this) (?:AI|virtual|helpful|digital)?[ -]?assistant(?:['’]s)?\b|\bas an AI\b"
    r"|\bthe (?:AI|chatbot|language model)\b"
    r"|\b(?:der|die|dem|den|des|ein|eine) (?:KI[ -]?)?assistent(?:in|en|s)?\b|\bdie KI\b"
    r"|\bl['’]assistante?\b|\bel asistente\b|\bl['’]assistente\b|\bo assistente\b",
    re.IGNORECASE,
)
#: Who speaks of such things may be told of them.
_OF_ASSISTANTS = re.compile(r"assist|\b(?:AI|KI|IA)\b|chatbot|language model")
_REFUSED = re.compile(
    r"\b(?:I['’]m|I am) (?:sorry|unable|not able)\b[^.!?]{0,60}"
    r"\b(?:can['’]?t|cannot|not|unable|assist|help|comply|summari[sz]e|provide|to do)\b"
    r"|^\W*I (?:can['’]?t|cannot|won['’]t|will not|must decline)\b[^.!?]{0,40}\b(?:assist|help"
    r"|comply|summari[sz]e|provide|fulfil+|answer|continue|engage|do (?:that|this))\b"
    r"|^\W*as an AI\b|\bmy (?:guidelines|programming)\b"
    r"|^\W*(?:es tut mir leid|tut mir leid|leider kann ich)\b[^.!?]{0,60}\bnicht\b"
    r"|^\W*(?:désolée?|lo siento|mi dispiace|sinto muito)\b[^.!?]{0,60}\b(?:pas|no|non|não)\b",
    re.IGNORECASE,
)
#: What a model copies from the form instead of filling it in.
_LEFT_OPEN = re.compile(
    r"^\W*(?:N/?A\W*)?$|^\W*(?:I\s*)?(?:\.\.\.|…)|^\W*at most 8 words\W*$"
    r"|\((?:two|three|four)(?: short)? sentences|\blorem ipsum\b"
    r"|\[(?:your |the |user['’]?s? |insert )*(?:name|date|topic|title|user|text|place)s?\]",
    re.IGNORECASE,
)


def wrong(text: str, *, language: str | None, of_assistants: bool = False) -> str | None:
    """Why a trace, a precis or notes cannot stay as they are; None if they can.

    `language`: of the conversation, if known. `of_assistants`: assistants were spoken of in it.
    """
    if left_open(text):
        return "it is empty or left open"
    if refused(text):
        return "it is a refusal; only tell what happened"
    own = guess(text)
    if language and own and own != language:
        return f"it must be in {NAMES[language]}, like the conversation"
    if not of_assistants and _ASSISTANT.search(_QUOTED.sub(" ", text)):
        return 'it speaks of the assistant; that is you, so write "I"'
    first = _FIRST_PERSON.get(own or language or "")
    if first and not first.search(_QUOTED.sub(" ", text)):
        return 'it is not in the first person; you were there, so write "I"'
    if word := relative(text, own or language):
        return f'"{word}" will mean another time later; write the date'
    return None


def of_assistants(text: str) -> bool:
    """Whether somebody speaks of assistants in `text`, of flesh or otherwise."""
    return _OF_ASSISTANTS.search(text) is not None


def left_open(text: str) -> bool:
    """Whether a text says nothing, or says what stood in the form to be filled in."""
    return not sentences(text) or _LEFT_OPEN.search(text) is not None


def refused(text: str) -> bool:
    """Whether a text declines to do what was asked, instead of doing it."""
    return _REFUSED.search(text[:400]) is not None


def relative(text: str, language: str | None = None) -> str | None:
    """The first word for a time that depends on when it is read. What is quoted, and what is
    written with a capital inside of a sentence (a title), does not count."""
    bare = _QUOTED.sub(lambda m: " " * len(m[0]), text)
    for found in _RELATIVE.finditer(bare):
        word = found[0]
        only = _ONLY_IN.get(word.lower())
        if only is not None and language != only:
            continue
        before = bare[: found.start()].rstrip()
        if word[0].isupper() and before and before[-1] not in '.!?:;"”…-–—\n':
            continue
        return word
    return None
