"""What was read of a file, on its way from the process that read it to the database."""

from __future__ import annotations

import msgspec


class ReadImage(msgspec.Struct, frozen=True, kw_only=True, tag="image"):
    """An image in two sizes, upright, without anything that its camera wrote beside it."""

    #: What the file is, from its bytes.
    media_type: str
    #: At most 1,568 pixels on the longer side.
    large: bytes
    large_type: str
    large_width: int
    large_height: int
    #: WebP, at most 512 pixels on the longer side.
    small: bytes
    small_width: int
    small_height: int
    #: What a person should know of how it was read.
    notes: tuple[str, ...] = ()


class ReadDocument(msgspec.Struct, frozen=True, kw_only=True, tag="document"):
    """The words of a document in reading order, without NULs and lone surrogates."""

    media_type: str
    words: str
    #: There were more words than are kept.
    words_cut: bool = False
    pages: int | None = None
    notes: tuple[str, ...] = ()


ReadFile = ReadImage | ReadDocument
