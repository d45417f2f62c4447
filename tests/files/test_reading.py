"""Reading files: what each kind gives, and what nobody should have sent."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Callable

import anyio
import docx
import pytest
from docx.oxml import parse_xml
from PIL import Image

from mira.errors import ValidationFailed
from mira.files import kinds, limits
from mira.files.child import read
from mira.files.reading import read_file
from mira.files.result import Refused
from mira.messages.files import ReadDocument, ReadImage
from tests.support.files import a_docx, a_pdf, an_xlsx, image_bytes, opened, photo

pytestmark = pytest.mark.anyio


def image_of(name: str, content: bytes) -> ReadImage:
    result = read(name, content)
    assert isinstance(result, ReadImage), result
    return result


def document_of(name: str, content: bytes) -> ReadDocument:
    result = read(name, content)
    assert isinstance(result, ReadDocument), result
    return result


def refusal_of(name: str, content: bytes) -> str:
    result = read(name, content)
    assert isinstance(result, Refused), result
    return result.detail


# Images.


@pytest.mark.parametrize(
    ("form", "media_type"),
    [("JPEG", kinds.JPEG), ("PNG", kinds.PNG), ("GIF", kinds.GIF), ("WEBP", kinds.WEBP)],
)
def test_an_image_of_each_kind_gets_two_sizes_whatever_it_is_called(
    form: str, media_type: str
) -> None:
    result = image_of("notes.txt", image_bytes(photo(2000, 1000), form))
    assert result.media_type == media_type
    assert (result.large_width, result.large_height) == (1568, 784)
    assert opened(result.large).size == (1568, 784)
    assert opened(result.small).size == (512, 256) == (result.small_width, result.small_height)
    assert opened(result.small).format == "WEBP"


def test_a_small_image_is_not_made_larger() -> None:
    result = image_of("dot.png", image_bytes(photo(40, 30), "PNG"))
    assert (result.large_width, result.small_width) == (40, 40)


def test_a_photograph_is_turned_upright_and_loses_where_it_was_taken() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter
    exif[0x8825] = {1: "N", 2: (48.0, 12.0, 0.0)}  # where
    result = image_of("p.jpg", image_bytes(photo(200, 100), "JPEG", exif=exif))
    assert (result.large_width, result.large_height) == (100, 200)
    assert dict(opened(result.large).getexif()) == {}
    assert dict(opened(result.small).getexif()) == {}


def test_what_can_be_seen_through_stays_so() -> None:
    result = image_of("logo.png", image_bytes(photo(20, 20, "RGBA"), "PNG"))
    assert result.large_type == kinds.PNG
    assert opened(result.large).mode == "RGBA"


@pytest.mark.parametrize(
    ("mode", "form"), [("CMYK", "JPEG"), ("I;16", "PNG"), ("P", "PNG"), ("1", "PNG")]
)
def test_unusual_colours_become_ordinary_ones(mode: str, form: str) -> None:
    result = image_of("x", image_bytes(photo(30, 30, mode), form))
    assert opened(result.large).mode == "RGB"


def test_of_a_moving_image_the_first_picture_is_shown_and_that_is_said() -> None:
    frames = [photo(10, 10), Image.new("RGB", (10, 10), "red")]
    moving = image_bytes(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert image_of("m.gif", moving).notes == ("It moves; only its first picture is looked at.",)


def test_an_image_that_claims_to_be_huge_is_refused_unopened() -> None:
    png = bytearray(image_bytes(photo(8, 8), "PNG"))
    header = b"IHDR" + (50_000).to_bytes(4, "big") * 2 + bytes(png[24:29])
    png[12:33] = header + zlib.crc32(header).to_bytes(4, "big")
    assert "million pixels" in refusal_of("bomb.png", bytes(png))


# Documents.


def test_a_pdf_gives_its_words_page_by_page() -> None:
    result = document_of("r.pdf", a_pdf("Sow in March.", "", "Water daily."))
    assert result.media_type == kinds.PDF
    assert result.pages == 3
    assert result.words.splitlines()[:2] == ["[Page 1]", "Sow in March."]
    assert "[Page 3]\nWater daily." in result.words
    assert result.notes == ("1 of 3 pages hold no words; they may be scanned.",)


def test_a_pdf_behind_a_password_is_refused_with_the_reason() -> None:
    assert "password" in refusal_of("r.pdf", a_pdf("secret", password="x"))


def test_a_docx_is_read_in_order_with_its_tables() -> None:
    result = document_of("garden.docx", a_docx())
    assert result.words.splitlines() == [
        "The garden", "- Beans", "Bed | Plant", "North | Leek", "After the table."
    ]  # fmt: skip


def test_what_stands_in_a_content_control_or_was_inserted_under_watch_is_read() -> None:
    document = docx.Document()
    document.add_paragraph("before")
    body = document.element.body
    space = f'xmlns:w="{document.element.nsmap["w"]}"'
    for xml in (
        f"<w:sdt {space}><w:sdtContent><w:p><w:r><w:t>in a control</w:t></w:r></w:p>"
        "</w:sdtContent></w:sdt>",
        f"<w:p {space}><w:ins><w:r><w:t>inserted</w:t></w:r></w:ins>"
        "<w:del><w:r><w:delText>deleted</w:delText></w:r></w:del></w:p>",
    ):
        body.insert(len(body) - 1, parse_xml(xml))
    into = io.BytesIO()
    document.save(into)
    result = document_of("form.docx", into.getvalue())
    assert result.words.splitlines() == ["before", "in a control", "inserted"]


def test_text_that_speaks_of_pdfs_is_text() -> None:
    assert document_of("n.txt", b"It begins with %PDF-1.7 and a line.").media_type == kinds.TXT


def test_a_large_drawing_that_is_seen_through_stays_small_enough_for_providers() -> None:
    noise = Image.effect_noise((1500, 1500), 90)
    drawn = Image.merge("RGBA", (noise, noise.rotate(90), noise.rotate(180), noise.rotate(270)))
    result = image_of("x.webp", image_bytes(drawn, "WEBP", quality=60))
    assert len(result.large) <= limits.IMAGE_BYTES
    assert result.large_type == kinds.WEBP
    assert opened(result.large).mode == "RGBA"


def test_a_workbook_gives_the_values_of_each_sheet() -> None:
    result = document_of("h.xlsx", an_xlsx())
    assert result.words.splitlines() == [
        "[Sheet: Harvest]", "Plant\tKilos\tOn", "Leek\t2.5\t2026-09-01",
        "Kale\t3\t2026-09-02 08:30:00", "[Sheet: Notes]", "dry summer",
    ]  # fmt: skip


def test_formulas_that_were_never_worked_out_are_mentioned() -> None:
    assert document_of("h.xlsx", an_xlsx()).notes == ()
    [note] = document_of("h.xlsx", an_xlsx("=1+1", "=SUM(Harvest!B2:B4)")).notes
    assert note.startswith("2 formulas hold no value")


@pytest.mark.parametrize(
    ("name", "media_type"),
    [("a.csv", kinds.CSV), ("a.json", kinds.JSON), ("a.txt", kinds.TXT), ("a.md", kinds.TXT)],
)
def test_plain_text_is_taken_as_it_stands(name: str, media_type: str) -> None:
    result = document_of(name, b'"caf\xc3\xa9"')
    assert (result.media_type, result.words, result.notes) == (media_type, '"café"', ())


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "cp1252"])
def test_text_in_other_codings_is_read(encoding: str) -> None:
    assert document_of("a.csv", "Größe;1".encode(encoding)).words == "Größe;1"


def test_json_that_is_none_is_taken_as_text_and_that_is_said() -> None:
    broken = "[" * 200_000
    assert document_of("a.json", broken.encode()).notes == (
        "This is no valid JSON; it was taken as text.",
    )


def test_no_more_words_are_kept_than_fit_and_that_is_said() -> None:
    result = document_of("long.txt", b"word " * 100_000)
    assert result.words_cut
    assert len(result.words) <= limits.WORDS


def test_words_hold_no_nul_and_no_lone_surrogate() -> None:
    result = document_of("a.txt", "a".ljust(9000, "b").encode() + b"\x00\xed\xa0\x80end")
    assert "\x00" not in result.words
    result.words.encode()


# What nobody should send.


def bomb(inside: str) -> bytes:
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(inside, b"0" * (limits.UNPACKED + 1))
    return into.getvalue()


def laughing() -> bytes:
    entities = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(12))
    xml = f'<?xml version="1.0"?><!DOCTYPE w [<!ENTITY a0 "ha">{entities}]><w>&a12;</w>'
    into = io.BytesIO(a_docx())
    with zipfile.ZipFile(into) as whole:
        parts = {name: whole.read(name) for name in whole.namelist()}
    parts["word/document.xml"] = xml.encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return out.getvalue()


@pytest.mark.parametrize("inside", ["word/document.xml", "xl/workbook.xml"])
def test_an_archive_that_swells_is_refused(inside: str) -> None:
    assert "too large when it is unpacked" in refusal_of("b.docx", bomb(inside))


def test_entities_that_multiply_are_not_followed() -> None:
    result = read("laugh.docx", laughing())
    assert isinstance(result, Refused) or len(result.words) < 1000  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "make",
    [lambda: a_pdf("Words here."), a_docx, an_xlsx, lambda: image_bytes(photo(300, 300), "PNG"),
     lambda: image_bytes(photo(300, 300), "JPEG"), lambda: image_bytes(photo(300, 300), "WEBP")],
)  # fmt: skip
@pytest.mark.parametrize("share", [0.03, 0.4, 0.9])
def test_a_file_that_was_cut_off_is_refused_or_read_but_never_breaks(
    make: Callable[[], bytes], share: float
) -> None:
    whole = make()
    result = read("cut", whole[: max(12, int(len(whole) * share))])
    assert isinstance(result, Refused | ReadDocument | ReadImage)


@pytest.mark.parametrize(
    "content", [b"\x7fELF\x02\x01\x01\x00\x00\x00", b"PK\x03\x04garbage", b"\x00\x01\x02\x03"]
)
def test_what_is_none_of_the_kinds_is_refused_with_what_is_taken(content: bytes) -> None:
    detail = refusal_of("program", content)
    assert "damaged" in detail or "MIRA takes images (JPEG, PNG, GIF, WebP)" in detail


def test_an_image_of_more_than_five_megabytes_is_refused() -> None:
    content = b"\x89PNG\r\n\x1a\n" + bytes(limits.IMAGE_BYTES)
    assert refusal_of("big.png", content) == "An image may have 5 MB at most."


# In a process of its own.


async def test_a_file_is_read_in_another_process() -> None:
    result = await read_file("garden.docx", a_docx())
    assert isinstance(result, ReadDocument)
    assert result.words.startswith("The garden")


async def test_an_empty_file_is_refused() -> None:
    with pytest.raises(ValidationFailed, match="empty"):
        await read_file("nothing.txt", b"")


async def test_a_refusal_reaches_the_caller_as_a_sentence() -> None:
    with pytest.raises(ValidationFailed, match="none of the kinds"):
        await read_file("x", b"\x00\x01\x02")


async def test_a_file_that_takes_too_long_is_given_up() -> None:
    with pytest.raises(ValidationFailed, match="too long"):
        await read_file("a.json", json.dumps({"a": 1}).encode(), deadline=0.001)


async def test_a_caller_who_is_cancelled_leaves_at_once() -> None:
    with anyio.move_on_after(0.001) as scope:
        await read_file("h.xlsx", an_xlsx())
    assert scope.cancelled_caught
