"""The words of a PDF, page by page."""

from __future__ import annotations

import io
import logging

from pypdf import PdfReader
from pypdf.errors import PyPdfError

from mira.files.kinds import PDF
from mira.files.limits import PAGES
from mira.files.result import DAMAGE, Unreadable
from mira.files.words import Words
from mira.messages.files import ReadDocument

_BROKEN = (PyPdfError, *DAMAGE)


def read(content: bytes) -> ReadDocument:
    """The words of each page under its number. Raises Unreadable."""
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = PdfReader(io.BytesIO(content), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("This PDF is protected by a password.")
        pages = len(reader.pages)
    except _BROKEN:
        raise Unreadable("This PDF is damaged and cannot be read.") from None
    words, silent, broken = Words(), 0, 0
    for number in range(min(pages, PAGES)):
        if words.full:
            break
        try:
            text = reader.pages[number].extract_text().strip()
        except _BROKEN:
            broken += 1
            continue
        if text:
            words.add(f"[Page {number + 1}]\n{text}\n")
        else:
            silent += 1
    notes = []
    if silent:
        notes.append(f"{silent} of {pages} pages hold no words; they may be scanned.")
    if broken:
        notes.append(f"{broken} of {pages} pages could not be read.")
    if pages > PAGES:
        notes.append(f"Only the first {PAGES:,} of {pages:,} pages were read.")
    return ReadDocument(
        media_type=PDF, words=str(words), words_cut=words.cut or pages > PAGES, pages=pages,
        notes=tuple(notes),
    )  # fmt: skip
