"""The words of DOCX and XLSX."""

from __future__ import annotations

import io
import re
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
#: A formula that was never worked out, as programs write it that only make such files.
_NO_VALUE = re.compile(rb"(?:</f>|<f\b[^>]*/>)\s*(?:<v\s*/>|<v></v>)?\s*</c>")
_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
#: Bytes of a sheet that are looked through for such.
_LOOKED_THROUGH = 32 * 1024 * 1024
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
        unknown = _without_value(content)
    except _BROKEN:
        raise Unreadable("This XLSX is damaged and cannot be read.") from None
    note = f"{unknown} formulas hold no value; opened and saved in a spreadsheet they would."
    return ReadDocument(
        media_type=XLSX, words=str(words), words_cut=words.cut, notes=(note,) if unknown else ()
    )


def _without_value(content: bytes) -> int:
    """How many formulas at the beginning of its sheets stand without what they come to."""
    with zipfile.ZipFile(io.BytesIO(content)) as book:
        return sum(
            len(_NO_VALUE.findall(book.open(name).read(_LOOKED_THROUGH)))
            for name in book.namelist()
            if _SHEET.fullmatch(name)
        )


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
