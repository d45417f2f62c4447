"""Asking the running server: one client, its answers as values, its problems as our errors."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2
import msgspec

from mira.cli.place import Server
from mira.errors import (
    Conflict,
    Forbidden,
    MiraError,
    NotFound,
    ProviderError,
    RateLimited,
    TooLarge,
    Unauthorized,
    Unavailable,
    ValidationFailed,
)

T = TypeVar("T")

#: Seconds to wait for an answer; the slowest thing asked here are the health checks.
_WITHIN = 30.0
_ERRORS: Mapping[str, type[MiraError]] = {
    error.code: error
    for error in (
        Conflict, Forbidden, NotFound, ProviderError, RateLimited, TooLarge, Unauthorized,
        Unavailable, ValidationFailed,
    )
}  # fmt: skip


class _Field(msgspec.Struct, frozen=True):
    field: str
    detail: str


class _Problem(msgspec.Struct, frozen=True):
    code: str
    detail: str
    request_id: str = ""
    errors: tuple[_Field, ...] = ()


class Http:
    """A client of one server, as its administrator. Use it as a context manager.

    Every method raises Unavailable when the server does not answer, and otherwise the error of
    ours that its problem details name.
    """

    def __init__(self, server: Server, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        self.server = server
        self._client = httpx2.AsyncClient(
            base_url=server.url,
            headers={"authorization": f"Bearer {server.token}"},
            timeout=_WITHIN,
            transport=transport,
            # A proxy in the environment has no business between two programs of one machine.
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._client.aclose()

    async def get(self, path: str, answer: type[T], **query: str | int) -> T:
        return await self._ask("GET", path, answer, params=query)

    async def post(self, path: str, answer: type[T], body: msgspec.Struct | None = None) -> T:
        return await self._ask("POST", path, answer, body=body)

    async def patch(self, path: str, answer: type[T], body: msgspec.Struct) -> T:
        return await self._ask("PATCH", path, answer, body=body)

    async def give(self, path: str, answer: type[T], content: bytes, **query: str | int) -> T:
        """Send bytes as they are, such as a file."""
        return await self._ask("POST", path, answer, params=query, content=content)

    async def put(self, path: str, body: msgspec.Struct) -> None:
        await self._send("PUT", path, body=body)

    async def delete(self, path: str) -> None:
        await self._send("DELETE", path)

    async def _ask(self, method: str, path: str, answer: type[T], **asked: Any) -> T:
        response = await self._send(method, path, **asked)
        try:
            return msgspec.json.decode(response.content, type=answer)
        except msgspec.DecodeError:
            raise self._strange() from None

    async def _send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str | int] | None = None,
        body: msgspec.Struct | None = None,
        content: bytes | None = None,
    ) -> httpx2.Response:
        content = content if body is None else msgspec.json.encode(body)
        headers = {} if body is None else {"content-type": "application/json"}
        try:
            response = await self._client.request(
                method, path, params=params, content=content, headers=headers
            )
        except httpx2.HTTPError as error:
            raise self._silent(error) from None
        if response.status_code >= 400:
            raise self._refusal(response)
        return response

    def _silent(self, error: httpx2.HTTPError) -> Unavailable:
        how = "does not answer in time" if isinstance(error, httpx2.TimeoutException) else (
            "cannot be reached"
        )  # fmt: skip
        return Unavailable(
            f"The server at {self.server.url} (process {self.server.pid}) {how}. "
            "If it just stopped, start it again with: mira serve"
        )

    def _strange(self) -> Unavailable:
        return Unavailable(
            f"What answers at {self.server.url} does not speak as this version of MIRA does. "
            "Restart the server after an upgrade."
        )

    def _refusal(self, response: httpx2.Response) -> MiraError:
        try:
            told = msgspec.json.decode(response.content, type=_Problem)
        except msgspec.DecodeError:
            return self._strange()
        if told.code == ValidationFailed.code:
            return ValidationFailed(told.detail, tuple((e.field, e.detail) for e in told.errors))
        known = _ERRORS.get(told.code)
        if known is None:
            return MiraError(f"{told.detail} (request {told.request_id} in the server's log)")
        if known is Unauthorized:
            return Unauthorized(
                "The server does not know this administrator; it may have been restarted just now. "
                "Try again."
            )
        return known(told.detail)
