"""The chat's line against a server that breaks off, refuses, and comes back, on a real socket."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import UUID

import anyio
import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from mira.cli.chat.line import Item, Line, Lost
from mira.cli.place import Server
from mira.clock import SystemClock
from mira.errors import Unauthorized, Unavailable
from mira.ids import SeededIds
from mira.messages.stream import TextAdded
from mira.messages.wire import Accepted, FrameError, Ready

pytestmark = pytest.mark.anyio

TURN, WAITING = (str(UUID(int=n)) for n in (7, 8))
Connection = Callable[["Peer"], Awaitable[None]]


class Peer:
    """One connection as the server has it."""

    def __init__(self, socket: ServerConnection) -> None:
        self._socket = socket

    async def say(self, type_: str, **fields: Any) -> None:
        await self._socket.send(json.dumps({"type": type_, **fields}))

    async def say_ready(self, **fields: Any) -> None:
        await self.say(
            "ready", **{"user_id": str(UUID(int=1)), "active_turn": None, "queued": [], **fields}
        )

    async def say_text(self, seq: int, text: str, offset: int) -> None:
        await self.say("text", turn_id=TURN, attempt=1, seq=seq, text=text, offset=offset)

    async def hear(self) -> dict[str, Any]:
        frame: dict[str, Any] = json.loads(await self._socket.recv())
        return frame

    async def close(self, code: int) -> None:
        await self._socket.close(code)


class PatientClock(SystemClock):
    """Its sleeps take no time, and count."""

    def __init__(self) -> None:
        self._slept = 0.0

    def monotonic(self) -> float:
        return self._slept

    async def sleep(self, seconds: float) -> None:
        self._slept += seconds
        await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def listening(*connections: Connection) -> AsyncIterator[Line]:
    """A line to a server that treats its first, second, … connection so."""
    left = list(connections)
    failed: list[Exception] = []

    async def handle(socket: ServerConnection) -> None:
        try:
            await left.pop(0)(Peer(socket))
        except Exception as error:
            failed.append(error)

    async with serve(handle, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        found = Server(url=f"http://127.0.0.1:{port}", pid=1, token="token")
        with Line(lambda: found, PatientClock(), SeededIds()) as line:
            yield line
    assert not failed, failed


@asynccontextmanager
async def kept_up(line: Line) -> AsyncIterator[Callable[[], Awaitable[Item]]]:
    """Keeps the line up; gives the function that waits for its next item."""

    async def item() -> Item:
        with anyio.fail_after(20):
            return await line.items.receive()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(line.run)
        yield item
        tasks.cancel_scope.cancel()


async def stay(peer: Peer) -> None:
    """Nothing more is said until the client leaves."""
    with suppress(ConnectionClosed):
        while True:
            await peer.hear()


async def test_a_message_is_sent_again_until_it_is_accepted_under_the_same_request_id() -> None:
    heard: list[dict[str, Any]] = []

    async def break_off(peer: Peer) -> None:
        await peer.say_ready()
        heard.append(await peer.hear())

    async def accept(peer: Peer) -> None:
        await peer.say_ready()
        heard.append(await peer.hear())
        await peer.say("accepted", turn_id=TURN, request_id=heard[-1]["request_id"])

    async def later(peer: Peer) -> None:
        await peer.say_ready()
        heard.append(await peer.hear())
        await stay(peer)

    async with listening(break_off, accept, later) as line:
        await line.say("hello", "r-1")
        async with kept_up(line) as item:
            got = [type(await item()) for _ in range(6)]
            assert got == [Ready, Lost, Ready, Accepted, Lost, Ready]
            await line.say("next", "r-2")
            with anyio.fail_after(20):
                while len(heard) < 3:
                    await anyio.sleep(0.01)
    assert [(h["type"], h.get("request_id")) for h in heard] == [
        ("message", "r-1"),
        ("message", "r-1"),
        ("resume", None),
    ]


async def test_after_a_break_a_turn_is_resumed_behind_the_last_event_seen() -> None:
    heard: list[dict[str, Any]] = []
    turn = {"turn_id": TURN, "request_id": "a", "content": "x", "state": "running"}
    waiting = {"turn_id": WAITING, "request_id": "b", "content": "y", "state": "received"}

    async def break_off(peer: Peer) -> None:
        await peer.say_ready(active_turn=turn, queued=[waiting])
        await peer.say_text(4, "one ", 0)

    async def go_on(peer: Peer) -> None:
        await peer.say_ready(active_turn=turn, queued=[waiting])
        heard.append(await peer.hear())
        await peer.say_text(5, "two", 4)
        await stay(peer)

    async with listening(break_off, go_on) as line, kept_up(line) as item:
        items = [await item() for _ in range(5)]
    assert heard == [{"type": "resume", "turn_id": TURN, "after": 4}]
    assert [i.text for i in items if isinstance(i, TextAdded)] == ["one ", "two"]


async def test_a_turn_that_has_ended_is_not_resumed() -> None:
    heard: list[dict[str, Any]] = []

    async def end(peer: Peer) -> None:
        await peer.say_ready()
        await peer.say_text(1, "half", 0)
        await peer.say("cancelled", turn_id=TURN, attempt=1, seq=2, text="half")

    async def go_on(peer: Peer) -> None:
        await peer.say_ready()
        heard.append(await peer.hear())

    async with listening(end, go_on, stay) as line, kept_up(line) as item:
        for _ in range(5):
            await item()
        await line.say("next", "r-1")
        assert isinstance(await item(), Lost)
    assert [frame["type"] for frame in heard] == ["message"]


async def test_a_server_that_stops_is_left_alone_for_as_long_as_it_asks() -> None:
    async def stop(peer: Peer) -> None:
        await peer.say_ready()
        await peer.say("shutdown", reconnect_after=7.5)

    async with listening(stop, stay) as line, kept_up(line) as item:
        assert isinstance(await item(), Ready)
        lost = await item()
    assert isinstance(lost, Lost)
    assert lost.retry_in == 7.5
    assert "stopping" in lost.reason


async def test_why_a_server_lets_nobody_in_is_told_and_waited_out_for_a_bounded_time() -> None:
    async def refuse(peer: Peer) -> None:
        await peer.say("error", code="unavailable", detail="The database is away.")
        await peer.close(1013)

    async with listening(*[refuse] * 40) as line, anyio.create_task_group() as tasks:
        tasks.start_soon(drain, line)
        with pytest.raises(Unavailable, match=r"The database is away. \(unavailable\)"):
            await line.run(give_up_after=30)
        tasks.cancel_scope.cancel()


async def test_a_key_that_is_not_known_is_not_tried_again() -> None:
    async def refuse(peer: Peer) -> None:
        await peer.close(4401)

    async with listening(refuse) as line:
        with pytest.raises(Unauthorized):
            await line.run()


async def test_a_message_that_is_too_large_is_refused_and_not_sent_again() -> None:
    async def refuse(peer: Peer) -> None:
        await peer.say_ready()
        await peer.hear()
        await peer.say("error", code="too_large", detail="Too long.")
        await peer.close(1009)

    async def listen(peer: Peer) -> None:
        await peer.say_ready()
        assert (await peer.hear())["request_id"] == "r-2"
        await peer.close(1000)

    async with listening(refuse, listen, stay) as line:
        await line.say("x" * 1000, "r-1")
        async with kept_up(line) as item:
            items = [await item() for _ in range(4)]
            await line.say("short", "r-2")
            await item()
    (refused,) = [i for i in items if isinstance(i, FrameError)]
    assert (refused.code, refused.request_id) == ("too_large", "r-1")


async def test_frames_that_only_a_newer_server_knows_are_passed_over() -> None:
    async def chatter(peer: Peer) -> None:
        await peer.say_ready(novelty=1)
        await peer.say("notification", id="1", body="new")
        await peer.say("hologram", turn_id=TURN, attempt=1, seq=1)
        await peer.say_text(2, "known", 0)
        await stay(peer)

    async with listening(chatter) as line, kept_up(line) as item:
        assert [type(await item()) for _ in range(2)] == [Ready, TextAdded]


async def drain(line: Line) -> None:
    async for _ in line.items:
        pass
