"""The words of DOCX and XLSX."""

from __future__ import annotations

import io
import warnings
import zipfile
import zlib
from collections.abc import Iterable
from datetime import datetime, time
from xml.etree.ElementTree import ParseError

import docx
import openpyxl
from docx.opc.exceptions import OpcError
from docx.table import Table
from openpyxl.utils.exceptions import InvalidFileException

from mira.files.kinds import DOCX, XLSX
from mira.files.result import ReadDocument, Unreadable
from mira.files.words import Words

#: What a damaged file may lead to: both readers let errors of what they stand on through.
DAMAGE = (OpcError, InvalidFileException, ParseError, SyntaxError, ValueError, TypeError, KeyError,
          IndexError, AttributeError, OSError, EOFError, RecursionError, AssertionError,
          NotImplementedError, zipfile.BadZipFile, zlib.error)  # fmt: skip


def read_docx(content: bytes) -> ReadDocument:
    """Paragraphs and tables in reading order; a row of a table is a line. Raises Unreadable."""
    words = Words()
    try:
        for block in docx.Document(io.BytesIO(content)).iter_inner_content():
            if words.full:
                break
            if isinstance(block, Table):
                for row in block.rows:
                    words.add(" | ".join(_once(cell.text.strip() for cell in row.cells)))
            elif block.text.strip():
                listed = (block.style.name or "").startswith("List") if block.style else False
                words.add(f"- {block.text}" if listed else block.text)
    except DAMAGE:
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
    except DAMAGE:
        raise Unreadable("This XLSX is damaged and cannot be read.") from None
    return ReadDocument(media_type=XLSX, words=str(words), words_cut=words.cut)


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
