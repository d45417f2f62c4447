"""Fan-out: one turn's events to many clients of one user, beside hypercorn's own frame rate.

The events are those of tool calls, which are not merged as text is. The peer is the smallest
application that hypercorn can serve, which sends the same frame as often to as many clients; it
runs as a process of its own: `python -m bench.turn_fanout`.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from bench.turn_socket import Socket

#: Tool calls in the one answer; each makes three events: called, running, failed.
CALLS = 150
#: Seconds that a whole round may take.
_WITHIN = 120.0
#: Concurrent handshakes.
_AT_ONCE = 32


class Listener:
    """A client that counts the frames of one kind."""

    def __init__(self, begins: bytes) -> None:
        self.count = 0
        self.first = self.last = 0.0
        self.sample = b""
        self._begins = begins
        self._wanted = 0
        self._enough: asyncio.Future[None] | None = None
        self._ready = asyncio.Event()

    async def connect(self, url: str, key: str, path: str) -> None:
        self.socket = await Socket.connect(url, self._heard, self._lost, key=key, path=path)
        if key:
            await self._ready.wait()

    def expect(self, frames: int) -> asyncio.Future[None]:
        """Count from now; done when so many have come."""
        self.count, self._wanted = 0, frames
        self._enough = asyncio.get_running_loop().create_future()
        return self._enough

    def _heard(self, text: bytes, at: float) -> None:
        if not text.startswith(self._begins):
            self._ready.set()
            return
        if self.count == 0:
            self.first, self.sample = at, text
        self.count += 1
        self.last = at
        if self.count == self._wanted and self._enough and not self._enough.done():
            self._enough.set_result(None)

    def _lost(self, why: str) -> None:
        if self._enough and not self._enough.done():
            self._enough.set_exception(ConnectionError(why))


async def _round(listeners: list[Listener], frames: int, words: bytes) -> float:
    """Frames a second over all listeners, from the first that one gets to the last of all."""
    waiting = [listener.expect(frames) for listener in listeners]
    listeners[0].socket.send(words)
    async with asyncio.timeout(_WITHIN):
        await asyncio.gather(*waiting)
    took = max(li.last for li in listeners) - min(li.first for li in listeners)
    return frames * len(listeners) / took


async def _connected(
    url: str, clients: int, begins: bytes, key: str = "", path: str = "/"
) -> list[Listener]:
    listeners = [Listener(begins) for _ in range(clients)]
    for start in range(0, clients, _AT_ONCE):
        some = listeners[start : start + _AT_ONCE]
        await asyncio.gather(*(listener.connect(url, key, path) for listener in some))
    return listeners


def script() -> dict[str, Any]:
    """What the provider double must do."""
    calls = [{"name": "look", "arguments": {"n": n}, "mode": "empty"} for n in range(CALLS)]
    return {"tokens": 5, "tools": calls}


async def measure(url: str, key: str, peer_url: str, clients: int, rounds: int) -> list[Any]:
    """Pairs of rates, ours and the peer's, one pair a round, and the last frame that was sent."""
    ours = await _connected(url, clients, b'{"type":"tool"', key, "/v1/ws")
    bare = await _connected(peer_url, clients, b"{")
    frames = 3 * CALLS
    pairs: list[Any] = []
    for number in range(rounds):
        words = b'{"type":"message","request_id":"fan-%d","content":"[#fan-%d] Look."}'
        mine = await _round(ours, frames, words % (number, number))
        told = json.dumps({"frames": frames, "text": ours[0].sample.decode()})
        pairs.append((mine, await _round(bare, frames, told.encode())))
    for listener in (*ours, *bare):
        listener.socket.close()
    return pairs


# The peer.


def bare_application() -> Callable[..., Awaitable[None]]:
    """An ASGI application that sends every client so many frames when one of them says so."""
    go: list[asyncio.Event] = [asyncio.Event()]
    wanted: dict[str, Any] = {}

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "websocket":
            return
        await receive()
        await send({"type": "websocket.accept"})

        async def tell() -> None:
            while True:
                await go[0].wait()
                frame = {"type": "websocket.send", "text": wanted["text"]}
                for _ in range(wanted["frames"]):
                    await send(frame)

        telling = asyncio.create_task(tell())
        while (message := await receive())["type"] == "websocket.receive":
            wanted.update(json.loads(message["text"]))
            go[0].set()
            go[0] = asyncio.Event()
        telling.cancel()

    return application


async def _serve_bare() -> None:
    from hypercorn.asyncio import serve
    from hypercorn.config import Config

    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    config = Config()
    config.accesslog = config.errorlog = None
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    config.bind = [f"fd://{listening.detach()}"]
    over = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), over.set)
    print(json.dumps({"url": url}), flush=True)
    await serve(bare_application(), config, shutdown_trigger=over.wait)


if __name__ == "__main__":
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve_bare())
