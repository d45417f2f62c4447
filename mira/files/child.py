"""The process that reads one file: `(name, bytes)` comes in, what it holds goes out, both as
MessagePack. It has no secrets, little memory and little time, and ends with its file."""

from __future__ import annotations

import resource
import sys

import msgspec

from mira.files.kinds import DOCX, IMAGES, PDF, XLSX, kind_of
from mira.files.limits import DOCUMENT_BYTES, IMAGE_BYTES, MB, MEMORY, PROCESSOR
from mira.files.result import Refused, Unreadable
from mira.messages.files import ReadFile


def read(name: str, content: bytes) -> ReadFile | Refused:
    """Read a file here, in this process."""
    try:
        media_type = kind_of(name, content)
        image = media_type in IMAGES
        most = IMAGE_BYTES if image else DOCUMENT_BYTES
        if len(content) > most:
            what = "An image" if image else "A document"
            raise Unreadable(f"{what} may have {most // MB} MB at most.")
        return _read(media_type, content)
    except Unreadable as refused:
        return Refused(detail=str(refused))
    except MemoryError:
        return Refused(detail="Reading this file takes more memory than a file may have.")


def _read(media_type: str, content: bytes) -> ReadFile:
    # What a kind needs is loaded for it alone: most of the time of a small file is loading.
    if media_type in IMAGES:
        from mira.files import images

        return images.read(content, media_type)
    if media_type == PDF:
        from mira.files import pdf

        return pdf.read(content)
    if media_type in (DOCX, XLSX):
        from mira.files import office

        return office.read_docx(content) if media_type == DOCX else office.read_xlsx(content)
    from mira.files import plain

    return plain.read(content, media_type)


def main() -> None:
    """Read what stands on the standard input."""
    for what, most in (
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_CPU, PROCESSOR),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (most, most))
    name, content = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=tuple[str, bytes])
    sys.stdout.buffer.write(msgspec.msgpack.encode(read(name, content)))


if __name__ == "__main__":
    main()
