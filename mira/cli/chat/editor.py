"""The line being typed: text, cursor, history. Knows keys and no terminal."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from rich.cells import cell_len

from mira.cli.chat.keys import Key
from mira.cli.output import printable

#: Lines remembered.
_MOST = 200


@dataclass
class Editor:
    """`press` a key; what is entered comes back. The cursor stands before `text[cursor]`."""

    text: str = ""
    cursor: int = 0
    history: list[str] = field(default_factory=list)
    _past: int = 0
    _draft: str = ""

    def press(self, key: Key) -> str | None:
        """Do what the key says. Returns the text when it is entered, which empties the line."""
        match key.name:
            case "text":
                self._replace(self.cursor, self.cursor, key.text)
            case "newline":
                self._replace(self.cursor, self.cursor, "\n")
            case "enter":
                return self._enter()
            case "backspace":
                self._replace(self._before(), self.cursor)
            case "delete" | "eof":
                self._replace(self.cursor, self._after())
            case "kill-word":
                self._replace(self._word_before(), self.cursor)
            case "kill-start":
                self._replace(self._line_start(), self.cursor)
            case "kill-end":
                self._replace(self.cursor, self._line_end())
            case "left":
                self.cursor = self._before()
            case "right":
                self.cursor = self._after()
            case "word-left":
                self.cursor = self._word_before()
            case "word-right":
                self.cursor = self._word_after()
            case "home":
                self.cursor = self._line_start()
            case "end":
                self.cursor = self._line_end()
            case "up":
                self._recall(-1)
            case "down":
                self._recall(1)
            case _:
                pass
        return None

    def set(self, text: str) -> None:
        """Put `text` in place of what is there, the cursor at its end."""
        self.text, self.cursor = text, len(text)

    def clear(self) -> None:
        self.set("")
        self._past = 0

    def rows(self, width: int) -> tuple[list[str], int, int]:
        """The text in rows of at most `width` cells, and row and index in it of the cursor.

        There is always room for the cursor behind the last character.
        """
        rows, row, index, used = [""], 0, 0, 0
        for position, character in enumerate(self.text):
            if position == self.cursor:
                row, index = len(rows) - 1, len(rows[-1])
            if character == "\n":
                rows.append("")
                used = 0
                continue
            shown = printable(character)
            cells = cell_len(shown)
            if used + cells >= width:
                rows.append("")
                used = 0
                if position == self.cursor:
                    row, index = len(rows) - 1, 0
            rows[-1] += shown
            used += cells
        if self.cursor == len(self.text):
            row, index = len(rows) - 1, len(rows[-1])
        return rows, row, index

    def _enter(self) -> str:
        entered = self.text
        if entered.strip() and self.history[-1:] != [entered]:
            self.history.append(entered)
            del self.history[:-_MOST]
        self.clear()
        return entered

    def _replace(self, start: int, end: int, text: str = "") -> None:
        self.text = self.text[:start] + text + self.text[end:]
        self.cursor = start + len(text)

    def _recall(self, step: int) -> None:
        """One line further into the past (-1) or back; the draft stands at the end."""
        if self._past == 0:
            self._draft = self.text
        past = self._past - step
        if 0 <= past <= len(self.history):
            self._past = past
            self.set(self.history[-past] if past else self._draft)

    def _before(self) -> int:
        at = max(0, self.cursor - 1)
        while at > 0 and _combines(self.text[at]):
            at -= 1
        return at

    def _after(self) -> int:
        at = min(len(self.text), self.cursor + 1)
        while at < len(self.text) and _combines(self.text[at]):
            at += 1
        return at

    def _word_before(self) -> int:
        return len(re.sub(r"\S*\s*\Z", "", self.text[: self.cursor]))

    def _word_after(self) -> int:
        match = re.compile(r"\s*\S*").match(self.text, self.cursor)
        assert match is not None
        return match.end()

    def _line_start(self) -> int:
        return self.text.rfind("\n", 0, self.cursor) + 1

    def _line_end(self) -> int:
        end = self.text.find("\n", self.cursor)
        return len(self.text) if end < 0 else end


def _combines(character: str) -> bool:
    """Whether it joins the character before it, so that the cursor does not stop between."""
    return character != "\n" and cell_len(character) == 0
