"""Files to be read, made by the libraries that others make them with."""

from __future__ import annotations

import io
from datetime import date, datetime

import docx
import openpyxl
from PIL import Image
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject


def image_bytes(image: Image.Image, form: str, **options: object) -> bytes:
    into = io.BytesIO()
    image.save(into, form, **options)
    return into.getvalue()


def photo(width: int, height: int, mode: str = "RGB") -> Image.Image:
    return Image.new(mode, (width, height), 0)


def opened(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content))


def a_pdf(*pages: str, password: str | None = None) -> bytes:
    writer = PdfWriter()
    font = DictionaryObject({
        NameObject("/Type"): NameObject("/Font"), NameObject("/Subtype"): NameObject("/Type1"),
        NameObject("/BaseFont"): NameObject("/Helvetica"),
    })  # fmt: skip
    for words in pages:
        page = writer.add_blank_page(300, 300)
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F1"): writer._add_object(font)})}
        )
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 20 200 Td ({words}) Tj ET".encode() if words else b"")
        page[NameObject("/Contents")] = writer._add_object(stream)
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    into = io.BytesIO()
    writer.write(into)
    return into.getvalue()


def a_docx() -> bytes:
    document = docx.Document()
    document.add_heading("The garden", 1)
    document.add_paragraph("Beans", style="List Bullet")
    table = document.add_table(2, 2)
    for row, words in zip(table.rows, (("Bed", "Plant"), ("North", "Leek")), strict=True):
        for cell, word in zip(row.cells, words, strict=True):
            cell.text = word
    document.add_paragraph("After the table.")
    into = io.BytesIO()
    document.save(into)
    return into.getvalue()


def an_xlsx(*formulas: str) -> bytes:
    """Two sheets; `formulas` stand in the second one, without a value."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Harvest"
    sheet.append(["Plant", "Kilos", "On"])
    sheet.append(["Leek", 2.5, date(2026, 9, 1)])
    sheet.append([])
    sheet.append(["Kale", 3, datetime(2026, 9, 2, 8, 30)])  # noqa: DTZ001
    book.create_sheet("Notes").append(["dry\tsummer", *formulas])
    into = io.BytesIO()
    book.save(into)
    return into.getvalue()
