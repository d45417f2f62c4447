"""Plain text, CSV and JSON."""

from __future__ import annotations

import codecs
import json

from mira.files.kinds import JSON
from mira.files.words import Words
from mira.messages.files import ReadDocument


def read(content: bytes, media_type: str) -> ReadDocument:
    """The text as it stands. What is not UTF-8 or UTF-16 is read as Windows-1252, and noted."""
    text, notes = _decoded(content)
    if media_type == JSON:
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            notes.append("This is no valid JSON; it was taken as text.")
    words = Words()
    words.add(text.replace("\r\n", "\n"))
    return ReadDocument(
        media_type=media_type, words=str(words), words_cut=words.cut, notes=tuple(notes)
    )


def _decoded(content: bytes) -> tuple[str, list[str]]:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", "replace"), []
    try:
        return content.decode("utf-8-sig"), []
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace"), ["It is not in UTF-8; read as Windows-1252."]
