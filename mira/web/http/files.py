"""Files that go with messages: taken, read, shown, taken back."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Annotated
from urllib.parse import quote

import msgspec
from anyio import to_thread
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp

from mira.files.kinds import IMAGES
from mira.files.limits import DOCUMENT_BYTES
from mira.files.reading import read_file
from mira.store import files
from mira.store.files import Size
from mira.web.endpoint import Call, Endpoint
from mira.web.models import FileInfo

_ANY = "application/octet-stream"
_LONGEST_NAME = 200


class NameQuery(msgspec.Struct, frozen=True, kw_only=True):
    """`name`: what the file is called, with its ending."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)] = "file"


class SizeQuery(msgspec.Struct, frozen=True, kw_only=True):
    """`size`: an image as models are shown it (`large`), or small; without it as it came."""

    size: Size | None = None


async def upload(call: Call[NameQuery, bytes]) -> ASGIApp:
    """Read the file, keep it, say what it is. The same file again is the same one."""
    services, name = call.services, cleaned(call.query.name)
    now = services.clock.now()
    # Of 32 MB it takes so long that the loop would be felt to stand.
    sha256 = await to_thread.run_sync(lambda: hashlib.sha256(call.body).digest())
    async with services.database.user(call.user_id) as tx:
        known = await files.find(tx, call.user_id, name, sha256, now)
        if known is None:
            await files.make_room(tx, call.user_id, now, coming=len(call.body))
    if known is not None:
        return _told(FileInfo.of(known), 200)
    async with call.context.reading.of(call.user_id):
        read = await read_file(name, call.body)
    async with services.database.user(call.user_id) as tx:
        kept = await files.put(
            tx, call.user_id, services.ids.new(), name, call.body, sha256, read,
            services.clock.now(),
        )  # fmt: skip
    return _told(FileInfo.of(kept), 201)


async def about(call: Call[None, None]) -> FileInfo:
    async with call.services.database.user(call.user_id) as tx:
        return FileInfo.of(await files.get(tx, call.user_id, call.id("file_id")))


async def content(call: Call[SizeQuery, None]) -> ASGIApp:
    """The bytes. Only images are shown in a browser; all else is something to save."""
    async with call.services.database.user(call.user_id) as tx:
        found = await files.content(tx, call.user_id, call.id("file_id"), call.query.size)
    shown = found.media_type in IMAGES
    tag = f'"{found.sha256.hex()[:32]}-{call.query.size or "whole"}"'
    headers = {
        "content-disposition": f"{'inline' if shown else 'attachment'}; "
        f"filename*=UTF-8''{quote(found.name, safe='')}",
        "content-security-policy": "default-src 'none'; sandbox",
        "x-content-type-options": "nosniff",
        # A file never changes, and is this user's alone.
        "cache-control": "private, max-age=31536000, immutable",
        "etag": tag,
    }
    if tag in call.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(found.content, media_type=found.media_type, headers=headers)


async def words(call: Call[None, None]) -> ASGIApp:
    async with call.services.database.user(call.user_id) as tx:
        text = await files.words(tx, call.user_id, call.id("file_id"))
    return PlainTextResponse(
        text, headers={"x-content-type-options": "nosniff", "cache-control": "no-store"}
    )


async def remove(call: Call[None, None]) -> None:
    async with call.services.database.user(call.user_id) as tx:
        await files.remove(tx, call.user_id, call.id("file_id"))


def cleaned(name: str) -> str:
    """A name without a path, control characters and what turns the direction of writing."""
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", name))[-1]
    kept = "".join(sign for sign in last if unicodedata.category(sign)[0] != "C").strip(" .")
    stem, dot, ending = kept.rpartition(".")
    if len(kept) > _LONGEST_NAME:
        kept = stem[: _LONGEST_NAME - len(ending) - 1] + dot + ending[:_LONGEST_NAME]
    return kept[:_LONGEST_NAME] or "file"


def _told(info: FileInfo, status: int) -> Response:
    return Response(msgspec.json.encode(info), status, media_type="application/json")


ENDPOINTS = (
    Endpoint("POST", "/v1/files", upload,
             "Give a file that a message will name; the body is the file itself",
             scope="chat", query=NameQuery, raw=DOCUMENT_BYTES, answer=FileInfo, status=201,
             also={200: FileInfo}, problems=(413, 429)),
    Endpoint("GET", "/v1/files/{file_id}", content, "A file as it came, or an image in one size",
             scope="read", query=SizeQuery, answer=_ANY, problems=(404,)),
    Endpoint("DELETE", "/v1/files/{file_id}", remove, "Take back a file that no message has",
             scope="chat", answer=None, status=204, problems=(404, 409)),
    Endpoint("GET", "/v1/files/{file_id}/about", about, "What is known of a file",
             scope="read", answer=FileInfo, problems=(404,)),
    Endpoint("GET", "/v1/files/{file_id}/words", words, "The words of a document, as text",
             scope="read", answer="text/plain", problems=(404,)),
)  # fmt: skip
