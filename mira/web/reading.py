"""Reading requests: bounded bodies, typed queries, opaque cursors."""

from __future__ import annotations

import base64
import binascii
import re
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import anyio
import msgspec
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from mira.errors import Malformed, TooLarge, ValidationFailed

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)

#: Numbers in cursors, as the database counts.
BigInt = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Int = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]

#: How msgspec tells of a bound, and what the lengths of these kinds count.
_BOUND = re.compile(r"Expected `(\w+)`( of length)? (<=|>=) (\d+)")
_COUNTED = {"str": "characters", "array": "entries", "object": "entries"}

#: How long a body may take to arrive.
BODY_WITHIN = 30.0
#: And a file: at a tenth of a megabyte a second, the largest.
FILE_WITHIN = 300.0
#: What is read and thrown away of a body that nobody wants, so that the answer can be read by a
#: client that still sends; and for how long.
_DRAIN_BYTES = 16 * 1024 * 1024
_DRAIN_WITHIN = 5.0


class Body:
    """The body of one request, read at most once."""

    def __init__(self, receive: Receive, length: str | None, limit: int) -> None:
        self._receive = receive
        self._length = length
        self._limit = limit
        self._more = True

    async def read(self, *, within: float = BODY_WITHIN) -> bytes:
        """The whole body, which has `within` seconds to arrive. Raises TooLarge beyond the limit,
        Malformed if it does not come."""
        if self._length is not None and self._length.isdigit() and int(self._length) > self._limit:
            raise self._too_large()
        parts, size = [], 0
        with anyio.move_on_after(within):
            while self._more:
                chunk = await self._next()
                size += len(chunk)
                if size > self._limit:
                    raise self._too_large()
                parts.append(chunk)
            return b"".join(parts)
        raise Malformed("The body of the request did not arrive in time.")

    async def drain(self) -> None:
        """Throw away what is left of it, within bounds."""
        size = 0
        with anyio.move_on_after(_DRAIN_WITHIN):
            while self._more and size < _DRAIN_BYTES:
                try:
                    size += len(await self._next())
                except ClientDisconnect:
                    return

    async def _next(self) -> bytes:
        message: Message = await self._receive()
        if message["type"] == "http.disconnect":
            self._more = False
            raise ClientDisconnect
        self._more = message.get("more_body", False)
        chunk: bytes = message.get("body", b"")
        return chunk

    def _too_large(self) -> TooLarge:
        return TooLarge(f"The body may have at most {self._limit} bytes.")


def json_body(raw: bytes, content_type: str | None, model: type[T]) -> T:
    """Decode a body. Raises Malformed if it is no JSON, ValidationFailed if it does not fit."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (
        kind.startswith("application/") and kind.endswith("+json")
    ):
        raise Malformed("Send JSON, with the header Content-Type: application/json.")
    try:
        return msgspec.json.decode(raw, type=model)
    except msgspec.ValidationError as error:
        raise _invalid(error) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Malformed("The body is not valid JSON in UTF-8.") from None


def query(parameters: QueryParams, model: type[S]) -> S:
    """Decode a query string. Raises ValidationFailed."""
    names = {field.encode_name for field in msgspec.structs.fields(model)}
    given: dict[str, Any] = {name: value for name, value in parameters.items() if name in names}
    try:
        return msgspec.convert(given, model, strict=False)
    except msgspec.ValidationError as error:
        raise _invalid(error) from None


def write_cursor(*parts: object) -> str:
    """An opaque cursor from the sort key of the last row of a page."""
    return base64.urlsafe_b64encode(msgspec.json.encode(parts)).rstrip(b"=").decode()


def read_cursor(cursor: str | None, kind: type[T]) -> T | None:
    """The sort key in a cursor, None for none. Raises ValidationFailed for one we did not write."""
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        raw = base64.b64decode(padded, altchars=b"-_", validate=True)
        parts = msgspec.json.decode(raw, type=kind)
        for part in parts if isinstance(parts, tuple) else ():
            if isinstance(part, datetime):
                storable("cursor", part)
        return parts
    except (msgspec.MsgspecError, UnicodeError, ValueError, binascii.Error):
        raise ValidationFailed(
            "This cursor was not given out here.", (("cursor", "not a cursor"),)
        ) from None


def storable(name: str, at: datetime) -> datetime:
    """A moment as the database holds it, in UTC. Raises ValidationFailed, with `name` as the
    field, for one without an offset or at the very ends of time."""
    if at.utcoffset() is None or not 1 < at.year < 9999:
        raise ValidationFailed(
            "A moment has an offset from UTC, and lies in the years 2 to 9998.",
            ((name, "not such a moment"),),
        )
    return at.astimezone(UTC)


def cut(rows: list[T], limit: int) -> tuple[list[T], bool]:
    """A page out of one row more than asked for, and whether another page follows."""
    return rows[:limit], len(rows) > limit


def in_words(error: msgspec.ValidationError) -> tuple[str, str]:
    """The field, empty for the whole, and what is wrong with it.

    msgspec says: `Expected `str` of length >= 10 - at `$.text`.
    """
    text, _, at = str(error).partition(" - at ")
    if bound := _BOUND.fullmatch(text):
        kind, length, sign, number = bound.groups()
        what = f" {_COUNTED.get(kind, kind)}" if length else ""
        text = f"It takes at {'least' if sign == '>=' else 'most'} {number}{what}"
    return at.strip("`").removeprefix("$").lstrip("."), text


def _invalid(error: msgspec.ValidationError) -> ValidationFailed:
    field, text = in_words(error)
    return ValidationFailed(f"{field or 'body'}: {text}.", ((field or "body", text),))
