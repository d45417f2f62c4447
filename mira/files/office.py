"""The words of DOCX and XLSX."""

from __future__ import annotations

import io
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from datetime import datetime, time
from typing import Any

import docx
import openpyxl
from docx.opc.exceptions import OpcError
from docx.oxml.ns import qn
from docx.text.paragraph import Paragraph
from openpyxl.utils.exceptions import InvalidFileException

from mira.files.kinds import DOCX, XLSX
from mira.files.result import DAMAGE, Unreadable
from mira.files.words import Words
from mira.messages.files import ReadDocument

_PARAGRAPH, _TABLE, _ROW, _CELL = qn("w:p"), qn("w:tbl"), qn("w:tr"), qn("w:tc")
_WORDS, _TAB, _BREAK = qn("w:t"), qn("w:tab"), qn("w:br")
#: What may stand around paragraphs.
_AROUND = frozenset(map(qn, ("w:sdt", "w:sdtContent", "w:ins", "w:customXml", "w:smartTag")))
_BROKEN = (OpcError, InvalidFileException, zipfile.BadZipFile, zlib.error, *DAMAGE)


def read_docx(content: bytes) -> ReadDocument:
    """Paragraphs and tables in reading order; a row of a table is a line. What stands in content
    controls or was inserted under watch is read like the rest. Raises Unreadable."""
    words = Words()
    try:
        document = docx.Document(io.BytesIO(content))
        for element in _blocks(document.element.body):
            if words.full:
                break
            if element.tag == _TABLE:
                for row in element.iter(_ROW):
                    words.add(" | ".join(_once(_text(cell) for cell in row.iter(_CELL))))
            elif text := _text(element):
                style = Paragraph(element, document).style
                listed = style is not None and (style.name or "").startswith("List")
                words.add(f"- {text}" if listed else text)
    except _BROKEN:
        raise Unreadable("This DOCX is damaged and cannot be read.") from None
    return ReadDocument(media_type=DOCX, words=str(words), words_cut=words.cut)


def read_xlsx(content: bytes) -> ReadDocument:
    """The values of each sheet under its name, a row to a line, tabs between cells. Raises
    Unreadable."""
    warnings.simplefilter("ignore")
    words = Words()
    try:
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        for sheet in book.worksheets:
            if words.full:
                break
            words.add(f"[Sheet: {sheet.title}]")
            sheet.reset_dimensions()  # as large as it says it is, it need not be
            for row in sheet.iter_rows(values_only=True):
                if words.full:
                    break
                line = "\t".join(map(_cell, row)).rstrip()
                if line:
                    words.add(line)
    except _BROKEN:
        raise Unreadable("This XLSX is damaged and cannot be read.") from None
    return ReadDocument(media_type=XLSX, words=str(words), words_cut=words.cut)


def _blocks(parent: Any) -> Iterator[Any]:
    """Paragraphs and tables below an element, in order; none that lies in a table."""
    for child in parent.iterchildren():
        if child.tag in (_PARAGRAPH, _TABLE):
            yield child
        elif child.tag in _AROUND:
            yield from _blocks(child)


def _text(element: Any) -> str:
    """The words below an element. Those that were deleted under watch have another tag."""
    pieces = []
    for one in element.iter(_WORDS, _TAB, _BREAK, _PARAGRAPH):
        if one.tag == _WORDS:
            pieces.append(one.text or "")
        elif pieces:
            pieces.append(" " if one.tag != _BREAK else "\n")
    return "".join(pieces).strip()


def _once(cells: Iterable[str]) -> list[str]:
    """A merged cell is named for each column that it spans."""
    kept: list[str] = []
    for cell in cells:
        if not kept or kept[-1] != cell or not cell:
            kept.append(cell)
    return kept


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return str(value.date() if value.time() == time() else value)
    return str(value).replace("\t", " ").replace("\n", " ")
