"""One connection to the provider double: HTTP/1.1 with keep-alive, and streams paced by a timer.

Written on asyncio protocols, with one timer per stream and no task: a thousand streams at fifty
pieces a second are a load for the program under test, not for the double.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

import msgspec

from bench import provider_batches
from bench import provider_wire as wire
from bench.provider_answer import Asked, Protocol
from bench.provider_script import ASIDE, KEEPER, Failure, load

if TYPE_CHECKING:
    from bench.provider_double import ProviderDouble

_MARKER = re.compile(r"\[#([^\]\s]{1,100})\]")
_MAX_BODY = 64 * 1024 * 1024
_encode = msgspec.json.Encoder().encode
_HIDDEN_HEADERS = frozenset({"authorization", "x-api-key", "cookie"})


class AsideStamp(msgspec.Struct):
    marker: str
    received: float


class Stamp(msgspec.Struct):
    serial: int
    marker: str
    protocol: str
    received: float
    first_byte: float | None = None
    done: float | None = None
    outcome: str = "open"


class Connection(asyncio.Protocol):
    """One connection of HTTP/1.1 with keep-alive. Requests are answered one after another."""

    def __init__(self, double: ProviderDouble) -> None:
        self.double = double
        self.loop = asyncio.get_running_loop()
        self.buffer = bytearray()
        self.transport: asyncio.Transport | None = None
        self.steps: Iterator[wire.Step] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.stamp: Stamp | None = None
        self.due = 0.0
        self.last = b""

    # The transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.double.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self.double.connections.discard(self)
        if self.timer is not None:
            self.timer.cancel()
        if self.steps is not None:
            self._settle("aborted")

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        self._parse()

    def _parse(self) -> None:
        while self.steps is None and self.transport is not None:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self.buffer[:end].decode("latin-1").split("\r\n")
            headers = {
                name.strip().lower(): value.strip()
                for name, _, value in (line.partition(":") for line in head[1:])
            }
            length = int(headers.get("content-length") or 0)
            if "transfer-encoding" in headers or length > _MAX_BODY:
                self._reply(411, b'{"error":"send a Content-Length"}')
                self.abort()
                return
            if len(self.buffer) < end + 4 + length:
                return
            received = time.monotonic()
            body = bytes(self.buffer[end + 4 : end + 4 + length])
            del self.buffer[: end + 4 + length]
            method, _, rest = head[0].partition(" ")
            path = rest.partition(" ")[0].partition("?")[0]
            self._route(method, path, headers, body, received)

    # Requests.

    def _route(
        self, method: str, path: str, headers: dict[str, str], body: bytes, received: float
    ) -> None:
        double = self.double
        match method, path:
            case "POST", "/v1/messages":
                self._model("anthropic", headers, body, received)
            case "POST", "/v1/chat/completions" | "/chat/completions":
                self._model("openai", headers, body, received)
            case "POST", "/v1/messages/count_tokens":
                self._reply(200, _encode({"input_tokens": len(body) // 4}))
            case _ if path.startswith(provider_batches.PATH):
                self._batch(method, path, body)
            case "GET", "/v1/models" | "/models":
                self._reply(200, _MODELS)
            case "POST", "/_script":
                try:
                    double.script = load(body)
                except msgspec.MsgspecError as error:
                    self._reply(422, _encode({"error": str(error)}))
                else:
                    self._reply(200, b"{}")
            case "GET", "/_stamps":
                self._reply(200, _encode(list(double.stamps)))
            case "GET", "/_requests":
                self._reply(200, _encode(list(double.requests)))
            case "GET", "/_aside":
                self._reply(200, _encode(list(double.aside)))
            case "GET", "/_asides":
                self._reply(200, _encode(list(double.aside_stamps)))
            case "GET", "/_state":
                state = {
                    "open": double.open,
                    "served": double.served,
                    "connections": len(double.connections),
                }
                self._reply(200, _encode(state))
            case "DELETE", "/_stamps":
                double.stamps.clear()
                double.requests.clear()
                double.aside.clear()
                double.aside_stamps.clear()
                self._reply(200, b"{}")
            case _:
                self._reply(404, b'{"error":{"type":"not_found_error","message":"No such path."}}')

    def _model(
        self, protocol: Protocol, headers: dict[str, str], body: bytes, received: float
    ) -> None:
        double = self.double
        double.served += 1
        try:
            wanted = msgspec.json.decode(body, type=dict[str, Any])
            asked = _asked(protocol, wanted, double)
        except (msgspec.MsgspecError, AttributeError, TypeError, KeyError):
            broken = Failure(status=400, type="invalid_request_error", message="No such request.")
            self._reply(400, wire.failed(broken, protocol))
            return
        shown = {name: value for name, value in headers.items() if name not in _HIDDEN_HEADERS}
        kept = {"protocol": protocol, "headers": shown, "body": wanted}
        if wanted.get("model") == ASIDE:
            double.aside.append(kept)
            # What was said before stands before the message.
            about = _MARKER.findall(asked.last_user_message)
            double.aside_stamps.append(AsideStamp(about[-1] if about else "", received))
            behaviour = double.script.aside
        else:
            double.requests.append(kept)
            behaviour = double.script.take(
                asked.last_user_message, queued=wanted.get("model") != KEEPER
            )
            found = _MARKER.search(asked.last_user_message)
            self.stamp = Stamp(asked.serial, found[1] if found else "", protocol, received)
            double.stamps.append(self.stamp)
            double.count_open(1)
        if behaviour.error is not None:
            extra = ""
            if behaviour.error.retry_after is not None:
                extra = f"retry-after: {behaviour.error.retry_after}\r\n"
            self._reply(behaviour.error.status, wire.failed(behaviour.error, protocol), extra)
            self._settle("error")
        elif asked.stream:
            self._write(_STREAM_HEAD)
            self.steps = wire.plan(behaviour, asked)
            self.due = self.loop.time()
            self._step()
        else:
            reply = wire.whole(behaviour, asked)
            wait = (behaviour.first_token_ms + behaviour.token_ms * behaviour.tokens) / 1000
            self.steps = iter(())
            self.timer = self.loop.call_later(wait, self._whole, reply)

    def _batch(self, method: str, path: str, body: bytes) -> None:
        def read(params: dict[str, Any]) -> Asked:
            self.double.served += 1
            return _asked("anthropic", params, self.double)

        reply = self.double.batches.answer(method, path, body, read, self.double.url)
        if not reply.broken:
            self._reply(reply.status, reply.body)
            return
        if path.endswith("/results"):
            # So much of it arrives; the rest never comes.
            self._write(_STREAM_HEAD)
            self._flush([reply.body])
        if self.transport is not None:
            self.transport.close()

    def _whole(self, reply: bytes) -> None:
        if self.stamp is not None:
            self.stamp.first_byte = time.monotonic()
        self._reply(200, reply)
        self._settle("complete")
        self._parse()

    # Streams.

    def _step(self, waited: wire.Step | None = None) -> None:
        """Write what is due, as one chunk, and set the timer for what comes next."""
        steps = self.steps
        if steps is None or self.transport is None:
            return
        batch: list[bytes] = []
        stamp = self.stamp
        step = waited or next(steps, None)
        while step is not None:
            delay, payload, is_piece = step
            if delay and step is not waited:
                self.due = max(self.due + delay, self.loop.time())
                self._flush(batch)
                self.timer = self.loop.call_at(self.due, self._step, step)
                return
            if payload is wire.ABORT:
                self._flush(batch)
                self._settle("cut")
                self.abort()
                return
            if payload is wire.HANG:
                self._flush(batch)
                return
            if payload is wire.REPEAT:
                self._flush([self.last])
                self.due = self.loop.time() + delay
                self.timer = self.loop.call_at(self.due, self._step, step)
                return
            if is_piece and stamp is not None and stamp.first_byte is None:
                stamp.first_byte = time.monotonic()
            batch.append(payload)
            self.last = payload
            step = next(steps, None)
        self._flush(batch, end=True)
        self._settle("complete")
        self._parse()

    def _flush(self, batch: list[bytes], *, end: bool = False) -> None:
        payload = b"".join(batch)
        chunk = b"%x\r\n%s\r\n" % (len(payload), payload) if payload else b""
        if end:
            chunk += b"0\r\n\r\n"
        self._write(chunk)

    def _settle(self, outcome: str) -> None:
        """The request is over; the connection may serve the next."""
        self.steps = self.timer = None
        if self.stamp is not None:
            self.stamp.done = time.monotonic()
            self.stamp.outcome = outcome
            self.stamp = None
            self.double.count_open(-1)

    def _write(self, data: bytes) -> None:
        if data and self.transport is not None:
            self.transport.write(data)

    def _reply(self, status: int, body: bytes, extra: str = "") -> None:
        try:
            phrase = HTTPStatus(status).phrase
        except ValueError:
            phrase = "Overloaded"
        head = (
            f"HTTP/1.1 {status} {phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nrequest-id: req_double\r\n{extra}\r\n"
        )
        self._write(head.encode() + body)


def _asked(protocol: Protocol, body: dict[str, Any], double: ProviderDouble) -> Asked:
    """What the double needs to know of a request. Raises TypeError or the like if it is none."""
    messages: list[dict[str, Any]] = body["messages"]
    said: list[str] = []
    after_tools = _is_tool_result(messages[-1]) if messages else False
    for message in reversed(messages):
        said = _texts(message) if message["role"] == "user" else []
        if said:
            break
    options = body.get("stream_options") or {}
    asked = Asked(
        protocol=protocol,
        model=body["model"],
        stream=bool(body.get("stream")),
        last_user_message="\n".join(said),
        echo=said[-1] if said else "",
        after_tools=after_tools,
        wants_usage=bool(options.get("include_usage")) or not body.get("stream"),
        serial=double.served,
    )
    asked.cache_read, asked.cache_write, asked.input_tokens = double.cache.account(body)
    return asked


def _texts(message: dict[str, Any]) -> list[str]:
    content = message.get("content") or ""
    if isinstance(content, str):
        return [content] if content else []
    return [block["text"] for block in content if block.get("type") == "text" and block["text"]]


def _is_tool_result(message: dict[str, Any]) -> bool:
    content = message.get("content")
    return message["role"] == "tool" or (
        isinstance(content, list) and any(block.get("type") == "tool_result" for block in content)
    )


_MODELS = _encode(
    {
        "object": "list",
        "data": [
            {
                "id": "double-1",
                "type": "model",
                "object": "model",
                "display_name": "Double 1",
                "created_at": "2026-01-01T00:00:00Z",
                "created": 1_767_225_600,
                "owned_by": "bench",
            }
        ],
        "has_more": False,
        "first_id": "double-1",
        "last_id": "double-1",
    }
)
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"cache-control: no-cache\r\nrequest-id: req_double\r\ntransfer-encoding: chunked\r\n\r\n"
)
