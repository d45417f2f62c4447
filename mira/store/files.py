"""Files that users gave: as they came, and in the forms that models are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

import msgspec

from mira.errors import Conflict, NotFound, RateLimited
from mira.messages.content import Document, Image
from mira.messages.files import ReadFile, ReadImage
from mira.store.database import Tx

#: How long a file is kept that no message has, how many of them a user may have, and their bytes.
UNUSED_FOR = timedelta(days=1)
MOST_UNUSED = 20
MOST_UNUSED_BYTES = 200 * 1024 * 1024
#: Bytes and pages up to which a document is shown as a file to models that read such files.
WHOLE_BYTES, WHOLE_PAGES = 8 * 1024 * 1024, 100

Size = Literal["large", "small"]


class File(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a file. Sizes in bytes; width and height are those of the large image;
    `characters` those of the words of a document, of which there were more if `cut`."""

    id: UUID
    name: str
    kind: Literal["image", "document"]
    media_type: str
    size: int
    width: int | None
    height: int | None
    pages: int | None
    characters: int
    cut: bool
    notes: tuple[str, ...]
    created_at: datetime
    turn_id: UUID | None


class Content(msgspec.Struct, frozen=True):
    """The bytes of a file or of one of its forms."""

    name: str
    media_type: str
    content: bytes
    sha256: bytes


_SELECT = """
select id, name, kind, media_type, size, large_width as width, large_height as height, pages,
  length(words) as characters, words_cut as cut, notes, created_at, turn_id
from files where user_id = $1
"""


#: The columns of an image in each size.
_IMAGE: Mapping[Size, str] = {
    "large": "large as image, large_type as image_type, large_width as width, "
    "large_height as height",
    "small": "small as image, 'image/webp' as image_type, small_width as width, "
    "small_height as height",
}


async def find(tx: Tx, user_id: UUID, name: str, sha256: bytes, now: datetime) -> File | None:
    """The same bytes under the same name, if the user has given them before. Where no message has
    them yet they are kept as long again as if they were new."""
    await tx.execute(
        "update files set created_at = $4 where user_id = $1 and sha256 = $2 and name = $3 "
        "and turn_id is null",
        user_id, sha256, name, now,
    )  # fmt: skip
    row = await tx.row(_SELECT + "and sha256 = $2 and name = $3", user_id, sha256, name)
    return None if row is None else _file(row)


async def make_room(tx: Tx, user_id: UUID, now: datetime, *, coming: int) -> None:
    """Remove what no message took in time. Raises RateLimited if there is no room for `coming`
    bytes beside what waits. Until this transaction ends no other of the user's gets room."""
    await tx.execute(
        "select pg_advisory_xact_lock(hashtextextended($1, 20261201))", f"files/{user_id}"
    )
    await tx.execute(
        "delete from files where user_id = $1 and turn_id is null and created_at < $2",
        user_id, now - UNUSED_FOR,
    )  # fmt: skip
    row = await tx.row(
        "select count(*) as files, coalesce(sum(size), 0) as bytes from files "
        "where user_id = $1 and turn_id is null",
        user_id,
    )
    assert row is not None
    if row["files"] >= MOST_UNUSED or row["bytes"] + coming > MOST_UNUSED_BYTES:
        raise RateLimited(
            "Too many files wait for a message. Send a message with them or remove some.",
            retry_after=60.0,
        )


async def put(
    tx: Tx, user_id: UUID, file_id: UUID, name: str, content: bytes, sha256: bytes,
    read: ReadFile, at: datetime,
) -> File:  # fmt: skip
    """Keep a file; one with the same bytes and name that stands already is returned instead.
    Raises RateLimited as `make_room`."""
    if (known := await find(tx, user_id, name, sha256, at)) is not None:
        return known
    await make_room(tx, user_id, at, coming=len(content))
    image, document = (read, None) if isinstance(read, ReadImage) else (None, read)
    await tx.execute(
        "insert into files (id, user_id, name, kind, media_type, size, sha256, content, large, "
        "large_type, large_width, large_height, small, small_width, small_height, words, "
        "words_cut, pages, notes, created_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, "
        "$11, $12, $13, $14, $15, $16, $17, $18, $19, $20) on conflict do nothing",
        file_id, user_id, name, "image" if image else "document", read.media_type, len(content),
        sha256, content,
        image and image.large, image and image.large_type, image and image.large_width,
        image and image.large_height, image and image.small, image and image.small_width,
        image and image.small_height,
        document.words if document else "", bool(document and document.words_cut),
        document and document.pages, list(read.notes), at,
    )  # fmt: skip
    kept = await find(tx, user_id, name, sha256, at)
    assert kept is not None
    return kept


async def get(tx: Tx, user_id: UUID, file_id: UUID) -> File:
    """Raises NotFound."""
    row = await tx.row(_SELECT + "and id = $2", user_id, file_id)
    if row is None:
        raise NotFound("There is no such file.")
    return _file(row)


async def content(tx: Tx, user_id: UUID, file_id: UUID, size: Size | None = None) -> Content:
    """The bytes as they came, or an image in one of its sizes. Raises NotFound."""
    column, kind = {
        None: ("content", "media_type"),
        "large": ("large", "large_type"),
        "small": ("small", "'image/webp'"),
    }[size]
    row = await tx.row(
        f"select name, {kind} as media_type, {column} as content, sha256 from files "  # noqa: S608
        f"where user_id = $1 and id = $2 and {column} is not null",
        user_id, file_id,
    )  # fmt: skip
    if row is None:
        raise NotFound("There is no such file." if size is None else "There is no such image.")
    return Content(row["name"], row["media_type"], row["content"], row["sha256"])


async def words(tx: Tx, user_id: UUID, file_id: UUID) -> str:
    """The words of a document; none of an image. Raises NotFound."""
    found: str | None = await tx.value(
        "select words from files where user_id = $1 and id = $2", user_id, file_id
    )
    if found is None:
        raise NotFound("There is no such file.")
    return found


async def remove(tx: Tx, user_id: UUID, file_id: UUID) -> None:
    """Remove a file that no message has. Raises NotFound, and Conflict if one has it."""
    gone = await tx.value(
        "delete from files where user_id = $1 and id = $2 and turn_id is null returning id",
        user_id, file_id,
    )  # fmt: skip
    if gone is None:
        await get(tx, user_id, file_id)
        raise Conflict("A message has this file.")


async def shown(
    tx: Tx, user_id: UUID, ids: Sequence[UUID], *, size: Size, most: int
) -> dict[UUID, Image | Document]:
    """What models are shown of files: the image of a size, the first `most` characters of a
    document, and with `large` a PDF that is not too long as it came. Files that are not there are
    left out."""
    image, whole = _IMAGE[size], size == "large"
    rows = await tx.fetch(
        "select id, name, kind, media_type, pages, substr(words, 1, $3) as words, "  # noqa: S608
        f"{image}, case when $4 and media_type = 'application/pdf' and size <= $5 and pages <= $6 "
        "then content end as content from files where user_id = $1 and id = any($2)",
        user_id, list(ids), most, whole, WHOLE_BYTES, WHOLE_PAGES,
    )  # fmt: skip
    return {
        row["id"]: Image(
            name=row["name"], media_type=row["image_type"], content=row["image"],
            width=row["width"], height=row["height"],
        )
        if row["kind"] == "image"
        else Document(
            name=row["name"], media_type=row["media_type"], words=row["words"],
            content=row["content"] or b"", pages=row["pages"],
        )
        for row in rows
    }  # fmt: skip


def _file(row: object) -> File:
    return msgspec.convert(dict(row), File)  # type: ignore[call-overload]
