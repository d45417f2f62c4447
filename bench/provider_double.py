"""A model provider on loopback that speaks both real protocols, for tests and for the benchmark.

    python -m bench.provider_double --port 0 --first-token-ms 200 --tokens-per-s 50 --tokens 60

prints one JSON line, `{"url": "http://127.0.0.1:PORT"}`, and serves until its standard input
closes, or SIGTERM. Within a process: `async with ProviderDouble(script) as double: double.url`.

The protocols: `POST /v1/messages` (and `/v1/messages/count_tokens`), `POST /v1/chat/completions`,
`GET /v1/models`; streamed or not, whatever key is sent or none; `/v1/messages/batches` with all
that lies below (see bench.provider_batches). The controls:

    POST   /_script    a script (see bench.provider_script); replaces the one before
    GET    /_stamps    one object per request, in order: {serial, marker, protocol, received,
                       first_byte, done, outcome}; times are of time.monotonic(), which all
                       processes of a machine share; `first_byte` is that of the first piece of
                       the answer, `marker` is what stands in `[#…]` in the last user message,
                       `outcome` is complete, cut, error, aborted (the client left) or open
    GET    /_requests  the bodies received, the last thousand, with their headers but no key
    GET    /_aside     the bodies of requests to the model that is asked beside the conversation
    GET    /_asides    one object for each of those: {marker, received}, the last marker in it
    GET    /_state     {open, served, connections}
    DELETE /_stamps    forget stamps and requests
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections import deque
from typing import Any

import msgspec

from bench.provider_batches import BatchDesk
from bench.provider_cache import PrefixCache
from bench.provider_http import AsideStamp, Connection, Stamp
from bench.provider_script import Behaviour, Script, load

_encode = msgspec.json.Encoder().encode


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
        self.aside: deque[dict[str, Any]] = deque(maxlen=keep_requests)
        self.aside_stamps: deque[AsideStamp] = deque(maxlen=200_000)
        self.cache = PrefixCache()
        self.batches = BatchDesk(self)
        self.open = 0
        self.served = 0
        self.connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._changed = asyncio.Event()
        self.url = ""

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Listen; returns the address, without `/v1`."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Connection(self), host, port, backlog=4096)
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
