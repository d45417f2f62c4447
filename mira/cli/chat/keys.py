"""From the bytes that a terminal sends to the keys that were pressed."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Key:
    """A key by name, such as `left`; the name `text` carries what was typed or pasted."""

    name: str
    text: str = ""


_CONTROLS = {
    "\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace",
    "\x01": "home", "\x05": "end", "\x02": "left", "\x06": "right", "\x10": "up", "\x0e": "down",
    "\x04": "eof", "\x0b": "kill-end", "\x0c": "redraw", "\x15": "kill-start",
    "\x17": "kill-word",
}  # fmt: skip
#: What follows ESC [ or ESC O: parameters and the final letter.
_SEQUENCES = {
    "A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end",
    "1~": "home", "7~": "home", "4~": "end", "8~": "end", "3~": "delete",
    "1;5C": "word-right", "1;3C": "word-right", "1;5D": "word-left", "1;3D": "word-left",
}  # fmt: skip
_ALT = {
    "\r": "newline", "\n": "newline", "\x7f": "kill-word", "\x08": "kill-word",
    "b": "word-left", "f": "word-right",
}  # fmt: skip
_PASTE_BEGINS, _PASTE_ENDS = "\x1b[200~", "\x1b[201~"
_CSI = re.compile(r"\x1b(?:\[([0-9;?<=>]*[ -/]*[@-~])|O([@-~]))")
#: A sequence that goes on for longer is none.
_LONGEST = 32


class KeyReader:
    """Told bytes as they come, it gives the keys that are complete. What a terminal splits over
    two reads, a character or a sequence, is put together again."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._rest = ""
        self._pasting = False

    def feed(self, raw: bytes) -> Iterator[Key]:
        """The keys that are complete with `raw`; unknown ones are left out."""
        self._rest += self._decode(raw)
        while self._rest:
            if self._pasting:
                if (key := self._pasted()) is None:
                    return
            elif self._rest[0] == "\x1b":
                before = self._rest
                key = self._escaped()
                if self._rest is before:
                    return
            else:
                key = self._plain()
            if key is not None:
                yield key

    def _plain(self) -> Key | None:
        match = re.match(r"[^\x00-\x1f\x7f]+", self._rest)
        if match is not None:
            self._rest = self._rest[match.end() :]
            return Key("text", match.group())
        character, self._rest = self._rest[0], self._rest[1:]
        if character == "\t":
            return Key("text", " ")
        name = _CONTROLS.get(character)
        return Key(name) if name else None

    def _escaped(self) -> Key | None:
        """Takes a sequence off the rest, or leaves it untouched when more must come."""
        if self._rest.startswith(_PASTE_BEGINS):
            self._rest = self._rest[len(_PASTE_BEGINS) :]
            self._pasting = True
            return None
        match = _CSI.match(self._rest)
        if match is not None:
            self._rest = self._rest[match.end() :]
            name = _SEQUENCES.get(match.group(1) or match.group(2))
            return Key(name) if name else None
        if len(self._rest) == 1 or (self._rest[1] in "[O" and len(self._rest) < _LONGEST):
            return None
        name = _ALT.get(self._rest[1])
        self._rest = self._rest[2 if name or self._rest[1] in "[O" else 1 :]
        return Key(name) if name else None

    def _pasted(self) -> Key | None:
        text, ends, rest = self._rest.partition(_PASTE_ENDS)
        if not ends:
            return None
        self._rest, self._pasting = rest, False
        return Key("text", text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", "    "))
