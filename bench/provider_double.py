"""A model provider on loopback that speaks both real protocols, for tests and for the benchmark.

    python -m bench.provider_double --port 0 --first-token-ms 200 --tokens-per-s 50 --tokens 60

prints one JSON line, `{"url": "http://127.0.0.1:PORT"}`, and serves until its standard input
closes, or SIGTERM. Within a process: `async with ProviderDouble(script) as double: double.url`.

The protocols: `POST /v1/messages` (and `/v1/messages/count_tokens`), `POST /v1/chat/completions`,
`GET /v1/models`; streamed or not, whatever key is sent or none. The controls:

    POST   /_script    a script (see bench.provider_script); replaces the one before
    GET    /_stamps    one object per request, in order: {serial, marker, protocol, received,
                       first_byte, done, outcome}; times are of time.monotonic(), which all
                       processes of a machine share; `first_byte` is that of the first piece of
                       the answer, `marker` is what stands in `[#…]` in the last user message,
                       `outcome` is complete, cut, error, aborted (the client left) or open
    GET    /_requests  the bodies received, the last thousand, with their headers but no key
    GET    /_state     {open, served, connections}
    DELETE /_stamps    forget stamps and requests

Written on asyncio protocols, with one timer per stream and no task: a thousand streams at fifty
pieces a second are a load for the program under test, not for the double.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, cast

import msgspec

from bench import provider_wire as wire
from bench.provider_cache import PrefixCache
from bench.provider_script import Behaviour, Failure, Script, load

_MARKER = re.compile(r"\[#([^\]\s]{1,100})\]")
_MAX_BODY = 64 * 1024 * 1024
_encode = msgspec.json.Encoder().encode
_HIDDEN_HEADERS = frozenset({"authorization", "x-api-key", "cookie"})


class Stamp(msgspec.Struct):
    serial: int
    marker: str
    protocol: str
    received: float
    first_byte: float | None = None
    done: float | None = None
    outcome: str = "open"


class ProviderDouble:
    """The double itself. `script` may be replaced at any time; requests under way keep theirs."""

    def __init__(
        self, script: Script | Behaviour | None = None, *, keep_requests: int = 1000
    ) -> None:
        if isinstance(script, Behaviour):
            script = Script(default=script)
        self.script: Script = script or Script()
        self.stamps: deque[Stamp] = deque(maxlen=200_000)
        self.requests: deque[dict[str, Any]] = deque(maxlen=keep_requests)
        self.cache = PrefixCache()
        self.open = 0
        self.served = 0
        self.connections: set[_Connection] = set()
        self._server: asyncio.Server | None = None
        self._changed = asyncio.Event()
        self.url = ""

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Listen; returns the address, without `/v1`."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), host, port, backlog=4096)
        bound = self._server.sockets[0].getsockname()[1]
        self.url = f"http://{host}:{bound}"
        return self.url

    async def stop(self) -> None:
        """Stop listening and cut every connection."""
        if self._server is not None:
            self._server.close()
            for connection in list(self.connections):
                connection.abort()
            await self._server.wait_closed()
            self._server = None

    async def __aenter__(self) -> ProviderDouble:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def queue(self, *behaviours: Behaviour) -> None:
        """Append behaviours for the next requests."""
        self.script.queue.extend(behaviours)

    async def until_open(self, count: int) -> None:
        """Wait until exactly `count` requests are being answered."""
        while self.open != count:
            self._changed.clear()
            await self._changed.wait()

    def count_open(self, change: int) -> None:
        self.open += change
        self._changed.set()

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The bodies of the requests to a model so far."""
        return [request["body"] for request in self.requests]


class _Connection(asyncio.Protocol):
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
                self._reply(200, b"{}")
            case _:
                self._reply(404, b'{"error":{"type":"not_found_error","message":"No such path."}}')

    def _model(
        self, protocol: wire.Protocol, headers: dict[str, str], body: bytes, received: float
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
        double.requests.append({"protocol": protocol, "headers": shown, "body": wanted})
        behaviour = double.script.take(asked.last_user_message)
        found = _MARKER.search(asked.last_user_message)
        stamp = Stamp(asked.serial, found[1] if found else "", protocol, received)
        double.stamps.append(stamp)
        self.stamp = stamp
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


def _asked(protocol: wire.Protocol, body: dict[str, Any], double: ProviderDouble) -> wire.Asked:
    """What the double needs to know of a request. Raises TypeError or the like if it is none."""
    messages: list[dict[str, Any]] = body["messages"]
    said: list[str] = []
    after_tools = _is_tool_result(messages[-1]) if messages else False
    for message in reversed(messages):
        said = _texts(message) if message["role"] == "user" else []
        if said:
            break
    options = body.get("stream_options") or {}
    asked = wire.Asked(
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


async def _serve(arguments: argparse.Namespace) -> None:
    pace = 1000 / arguments.tokens_per_s if arguments.tokens_per_s else 0.0
    default = Behaviour(
        tokens=arguments.tokens, first_token_ms=arguments.first_token_ms, token_ms=pace
    )
    script = load(arguments.script.encode()) if arguments.script else Script(default=default)
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    if not arguments.detached:
        # The pipe to the parent closes when the parent ends, however it ends.
        parent = sys.stdin.fileno()
        loop.add_reader(parent, lambda: None if os.read(parent, 65536) else over.set())
    double = ProviderDouble(script)
    try:
        print(_encode({"url": await double.start(port=arguments.port)}).decode(), flush=True)
        await over.wait()
    finally:
        await double.stop()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.provider_double")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--tokens", type=int, default=20)
    parser.add_argument("--first-token-ms", type=float, default=0.0)
    parser.add_argument("--tokens-per-s", type=float, default=0.0, help="0: all at once")
    parser.add_argument("--script", default="", help="a script as JSON, instead of the options")
    parser.add_argument(
        "--detached", action="store_true", help="do not end when standard input closes"
    )
    arguments = parser.parse_args()
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(arguments))


if __name__ == "__main__":
    main()
