"""What a file is, told from its bytes. Its name decides only between kinds of plain text."""

from __future__ import annotations

import io
import zipfile
import zlib

from mira.files.limits import ENTRIES, UNPACKED
from mira.files.result import Unreadable

JPEG, PNG, GIF, WEBP = "image/jpeg", "image/png", "image/gif", "image/webp"
PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
TXT, CSV, JSON = "text/plain", "text/csv", "application/json"

IMAGES = frozenset({JPEG, PNG, GIF, WEBP})

ACCEPTED = (
    "MIRA takes images (JPEG, PNG, GIF, WebP) and documents (PDF, DOCX, XLSX, TXT, CSV, JSON)."
)
_BY_NAME = {"csv": CSV, "json": JSON}
_STARTS = (
    (b"\xff\xd8\xff", JPEG),
    (b"\x89PNG\r\n\x1a\n", PNG),
    (b"GIF87a", GIF),
    (b"GIF89a", GIF),
)


def kind_of(name: str, content: bytes) -> str:
    """The media type. Raises Unreadable for what none of the kinds is."""
    for start, kind in _STARTS:
        if content.startswith(start):
            return kind
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return WEBP
    if content.startswith(b"%PDF-") or (
        b"%PDF-" in content[:1024] and not _is_words(content[:1024])
    ):
        return PDF
    if content.startswith(b"PK\x03\x04"):
        return _archive(content)
    if looks_like_text(content):
        return _BY_NAME.get(name.rpartition(".")[2].lower(), TXT)
    raise Unreadable(f"This is none of the kinds of files that can be read. {ACCEPTED}")


def looks_like_text(content: bytes) -> bool:
    """Nothing in its beginning is what text does not hold."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    start = content[:8192]
    return not any(byte < 9 or 13 < byte < 27 for byte in start)


def _is_words(start: bytes) -> bool:
    """Text that speaks of PDFs; in a PDF itself bytes that are no text follow its first line."""
    try:
        start.decode()
    except UnicodeDecodeError as error:
        return error.start > len(start) - 4  # cut in the middle of a letter
    return True


def _archive(content: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            if len(entries) > ENTRIES or sum(one.file_size for one in entries) > UNPACKED:
                raise Unreadable("This file is too large when it is unpacked.")
            names = {one.filename for one in entries}
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError, RuntimeError):
        raise Unreadable("This file is damaged: its archive cannot be opened.") from None
    if "word/document.xml" in names:
        return DOCX
    if "xl/workbook.xml" in names:
        return XLSX
    raise Unreadable(f"This is an archive that is neither DOCX nor XLSX. {ACCEPTED}")
