"""Words as they are collected from a document: cleaned, and no more than are kept."""

from __future__ import annotations

import re

from mira.files.limits import WORDS

_LONE = re.compile("[\x00\ud800-\udfff]")


class Words:
    """Pieces of text, up to a bound."""

    def __init__(self, most: int = WORDS) -> None:
        self._pieces: list[str] = []
        self._room = most
        self.cut = False

    @property
    def full(self) -> bool:
        return self._room <= 0

    def add(self, text: str) -> None:
        """Take a piece, with a line's end behind it; what does not fit is left out."""
        text = _LONE.sub("", text)
        if len(text) + 1 > self._room:
            self.cut = True
            text = text[: max(0, self._room - 1)]
        if self._room > 0:
            self._pieces.append(text)
        self._room -= len(text) + 1
        if self.cut:
            self._room = 0

    def __str__(self) -> str:
        return "\n".join(self._pieces).strip()
