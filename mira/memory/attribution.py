"""Whose words a fact is in: the user's own, or only the assistant's, a memory's, somebody else's.

A model that reads a conversation names the lines that each fact is from, and is sometimes wrong:
what the assistant said, or had recalled, is then said to be from a user's "ok". Were that believed,
memory would feed on itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from mira.memory.chunks import Chunk, Line
from mira.memory.terms import term_frequencies

#: Marks with which people and programs set off the words of others.
_QUOTED = re.compile(
    r"```.*?(?:```|\Z)|\"{3}.*?(?:\"{3}|\Z)|'{3}.*?(?:'{3}|\Z)|^[ \t]*>[^\n]*",
    re.DOTALL | re.MULTILINE,
)
_QUESTION = re.compile(r"[^.!?…。！？؟\n]*[?？؟]")
#: How people agree to what was said before.
_YES = re.compile(
    r"\W*(?:(?:oh|well|hm+|ah),?\s+)?(?:yes|yeah|yep|yup|right|correct|exactly|true|indeed|sure|"
    r"definitely|absolutely|of course|that'?s (?:right|true|correct|it)|ja|genau|stimmt|richtig|"
    r"klar|oui|exact|sí|si|claro|sì|esatto|certo|sim|isso|да|верно|точно)(?!\w)|\W*(?:はい|そう|对|是|네|예)",
    re.IGNORECASE,
)
#: Of whom nearly every fact speaks.
_COMMON = frozenset({"user", "users"})

#: From which share on a fact is seen in words that it is not said to be from; up to which share it
#: may be the assistant's, and up to which one a memory's; and how much of it those must hold then.
SEEN = 0.3
_BARELY, _PARTLY = 0.3, 0.6
_SPOKEN, _RECALLED = 0.5, 0.8

_SENTENCE = re.compile(r"[^.!?…。！？؟\n]+")
_WORD = re.compile(r"\w{3,}")


class Attribution:
    """Says of facts whose they are. `known` are the texts of memories recalled in the chunk,
    `read` what the assistant read there besides: results of tools, documents."""

    def __init__(self, chunk: Chunk, known: Sequence[str], read: Sequence[str] = ()) -> None:
        self._read = read
        lines = (*chunk.before, *chunk.lines)
        self._before = {line.message_id: before for before, line in pairwise(lines)}
        self._spoken = [pieces(line.text) for line in lines if not line.by_user]
        self._recalled = [pieces(text) for text in known]

    def refused(self, text: str, lines: Sequence[Line]) -> str | None:
        """Why a fact cannot be from these lines of the user; None if it can.

        What is in nobody's words can: the model may have said it in others.
        """
        wanted, said = pieces(text), pieces(_joined(line.text for line in lines))
        own = share(text, _joined(_unquoted(line.text) for line in lines))
        if own < 0.2 and len(wanted & said) >= 0.5 * len(wanted):
            # Somebody else's words, that the user has only pasted.
            return "quoted, not said"
        if self._answered(text, lines):
            return None
        if own < _PARTLY and _in_others(wanted, said, self._recalled, _RECALLED):
            # What the assistant had before it, not what the user said just now.
            return "recalled, not said"
        if own < _BARELY and _in_others(wanted, said, self._spoken, _SPOKEN):
            return "not from the user's words"
        if own < _BARELY and _in_others(wanted, said, self._sentences(text), _SPOKEN):
            return "read, not said"
        return None

    def _sentences(self, text: str) -> Iterator[frozenset[str]]:
        """Sentences of what was read that share two words with a text. They are looked for in the
        words as they stand: much may have been read, and few facts have to be looked for."""
        wanted = set(_WORD.findall(text.lower()))
        for whole in self._read:
            for sentence in _SENTENCE.findall(whole):
                if len(wanted.intersection(_WORD.findall(sentence.lower()))) > 1:
                    yield pieces(sentence)

    def _answered(self, text: str, lines: Sequence[Line]) -> bool:
        """Whether the user agreed, or was asked for just this."""
        for line in lines:
            before = self._before.get(line.message_id)
            if before is None or before.by_user:
                continue
            asked = _joined(_QUESTION.findall(before.text))
            if _YES.match(line.text) or share(text, asked) >= 0.5:
                return True
        return False


def _in_others(
    wanted: frozenset[str], said: frozenset[str], others: Iterable[frozenset[str]], least: float
) -> bool:
    """Whether `least` of a fact is in one of these, and the user added nothing to it."""
    return any(
        len(wanted & theirs) >= least * len(wanted) and not wanted & (said - theirs)
        for theirs in others
    )


def seen_in(text: str, lines: Sequence[Line]) -> list[Line]:
    """The user's lines in which a fact is seen; none unless a good part of it is."""
    some = [line for line in lines if line.by_user and share(text, line.text) > 0]
    return some if share(text, _joined(line.text for line in some)) >= SEEN else []


def share(text: str, within: str) -> float:
    """How much of what `text` is made of is also in `within`."""
    wanted, there = pieces(text), pieces(within)
    return len(wanted & there) / len(wanted) if wanted else 0.0


def pieces(text: str) -> frozenset[str]:
    """The stems of its words, without those that say nothing of what a text is about."""
    return frozenset(term_frequencies(text).keys() - _COMMON)


def _joined(texts: Iterable[str]) -> str:
    return " ".join(texts)


def _unquoted(text: str) -> str:
    """What of a message is the user's own: without fences and lines that begin with ">"."""
    return _QUOTED.sub(" ", text)
