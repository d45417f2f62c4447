"""A summary as it comes together: what is good is kept, and only the rest is asked for again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mira.errors import ProviderMalformed
from mira.memory.chunks import Line
from mira.memory.lived import voice
from mira.memory.lived.answer import bare, fields
from mira.memory.lived.language import guess
from mira.memory.lived.sentences import sentences
from mira.memory.lived.summary import FIELDS, LONGEST, PRECIS, TITLE, TRACE, Summary

#: Words said in a segment of which not much can be told.
LITTLE = 60
#: Characters of the notes on one part of a long segment.
NOTES = 700


class Draft:
    """Takes answers until the summary of one segment is whole."""

    def __init__(self, lines: Sequence[Line], *, tries: int) -> None:
        """`tries`: so many answers at most are taken; on the last, too much is cut."""
        by_user = "\n".join(line.text for line in lines if line.by_user)
        self.language = guess(by_user)
        self._of_assistants = voice.of_assistants(by_user)
        self._little = sum(len(line.text.split()) for line in lines) < LITTLE
        self._tries = tries
        self._wanted: tuple[str, ...] = FIELDS
        self._kept: dict[str, Any] = {}

    def take(self, words: str, _cut: bool) -> Summary:
        """The summary, once every field is good.

        Raises ProviderMalformed, naming each field that is missing or cannot stay, and why.
        """
        self._tries -= 1
        found = fields(words, self._wanted)
        if not found and self._wanted == ("title",):
            found = {"title": bare(words)}
        if not found:
            if voice.refused(bare(words)):
                raise ProviderMalformed("It is a refusal; only tell what happened.")
            names = ", ".join(self._wanted)
            raise ProviderMalformed(f"It has none of the fields {names}.")
        reasons: dict[str, str] = {}
        for name in self._wanted:
            if name not in found:
                reasons[name] = "it is missing"
                continue
            value, why = self._checked(name, found[name])
            if why is None:
                self._kept[name] = value
            else:
                reasons[name] = why
        if reasons:
            self._wanted = tuple(reasons)
            told = "; ".join(f"{name}: {why}" for name, why in reasons.items())
            raise ProviderMalformed(f"Give only these fields anew. {told}.")
        return Summary(**self._kept)

    def corrected(self, summary: Summary) -> Callable[[str, bool], Summary]:
        """What reads a correction of `summary`: a field that is not good stays as it was.

        Raises ProviderMalformed if neither field can be used.
        """

        def read(words: str, _cut: bool) -> Summary:
            self._tries = 0
            found = fields(words, ("trace", "precis"))
            good = {}
            for name, value in found.items():
                tidy, why = self._checked(name, value)
                if why is None:
                    good[name] = tidy
            if not good:
                raise ProviderMalformed("Neither trace nor precis can be used.")
            return Summary(
                trace=good.get("trace", summary.trace),
                precis=good.get("precis", summary.precis),
                title=summary.title,
                complexity=summary.complexity,
            )

        return read

    def notes(self, words: str, _cut: bool) -> str:
        """The notes on a part of a long segment. Raises ProviderMalformed."""
        text = fields(words, ("notes",)).get("notes") or bare(words)
        why = voice.wrong(text, language=self.language, of_assistants=self._of_assistants)
        if why is not None:
            raise ProviderMalformed(f"The notes: {why}.")
        return _within(text, NOTES)

    def _checked(self, name: str, value: Any) -> tuple[Any, str | None]:
        """A field as it is to be kept, or why it cannot be."""
        last = self._tries <= 0
        if name == "complexity":
            return value, None
        if name == "title":
            return self._title(value, last)
        end = value[-1:]
        if (end.isascii() and end.isalnum()) or value.endswith((",", ";", "-")):
            if not last:
                return value, "it ends in the middle"
            value = " ".join(sentences(value)[:-1]) or value
        fewest, most = TRACE if name == "trace" else PRECIS
        told = sentences(value)
        if len(told) > most or len(value) > LONGEST[name]:
            if not last:
                return value, f"it has more than {most} sentences"
            value = _within(" ".join(told[:most]), LONGEST[name])
        elif len(told) < fewest and not self._little and not last:
            return value, f"it has {len(told)} instead of {fewest} sentences"
        if len(set(told)) < len(told):
            return value, "it says the same twice"
        why = voice.wrong(value, language=self.language, of_assistants=self._of_assistants)
        return value, why

    def _title(self, value: str, last: bool) -> tuple[str, str | None]:
        title = value.rstrip(" .").strip()
        if voice.left_open(title) or voice.refused(title):
            return title, "it is empty"
        if (word := voice.relative(title, self.language)) is not None:
            return title, f'"{word}" will mean another time later'
        if len(title.split()) > TITLE or len(title) > LONGEST["title"]:
            if not last:
                return title, f"it has more than {TITLE} words"
            title = _within(" ".join(title.split()[:TITLE]), LONGEST["title"]).rstrip(" ,;:-–—")
        return title, None


def _within(text: str, most: int) -> str:
    """As much of the beginning of `text` as fits, in whole sentences if one does."""
    if len(text) <= most:
        return text
    kept = ""
    for one in sentences(text):
        if len(kept) + len(one) + 1 > most:
            break
        kept = f"{kept} {one}".strip()
    return kept or text[: most - 1].rstrip() + "…"
