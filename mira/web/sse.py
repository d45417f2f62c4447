"""Server-sent events: the events of a turn as a response that never holds up the turn."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

import anyio
import msgspec
from starlette.types import Receive, Scope, Send

from mira.errors import MiraError
from mira.messages.stream import AnyTurnEvent
from mira.web import problems
from mira.web.context import Context
from mira.web.encoding import shows

Batches: TypeAlias = AbstractAsyncContextManager[AsyncIterator[tuple[AnyTurnEvent, ...]]]

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    # A buffering proxy would hold back what is meant to be seen as it is written.
    (b"x-accel-buffering", b"no"),
]
_BEAT = b": still here\n\n"


def frame(kind: str, data: bytes, number: int | None = None) -> bytes:
    """One event on the wire; JSON holds no line break, so the data is one line."""
    head = f"id: {number}\n" if number is not None else ""
    return f"{head}event: {kind}\ndata: ".encode() + data + b"\n\n"


class EventStream:
    """A turn's events, each with its number as id, ending after the closing one.

    `follow` is entered before the response begins: what it raises is told as an ordinary problem.
    A failure in the middle becomes a last event `error`. Comments keep a quiet stream alive. A
    client that leaves stops only its own stream.
    """

    def __init__(
        self,
        context: Context,
        follow: Callable[[], Batches],
        *,
        request_id: str,
        thinking: bool,
        first: msgspec.Struct | None = None,
    ) -> None:
        self._context = context
        self._follow = follow
        self._request_id = request_id
        self._thinking = thinking
        self._first = first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._follow() as batches:
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            if self._first is not None:
                await _chunk(send, frame("accepted", msgspec.json.encode(self._first)))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_leave_with, receive, tasks.cancel_scope)
                tasks.start_soon(self._beat, send)
                await self._send_all(batches, send)
                tasks.cancel_scope.cancel()
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_all(self, batches: AsyncIterator[tuple[AnyTurnEvent, ...]], send: Send) -> None:
        try:
            async for batch in batches:
                data = b"".join(
                    self._context.encoded.sse(event)
                    for event in batch
                    if shows(event, self._thinking)
                )
                if data:
                    await _chunk(send, data)
        except Exception as error:
            problems.report(error)
            if not isinstance(error, MiraError):
                error = MiraError()
            told = problems.problem(error, self._request_id)
            await _chunk(send, frame("error", msgspec.json.encode(told)))

    async def _beat(self, send: Send) -> None:
        while True:
            await self._context.services.clock.sleep(self._context.services.limits.sse_heartbeat)
            await _chunk(send, _BEAT)


async def _leave_with(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _chunk(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})
