"""The WebSocket to the server: one that comes back when it breaks and resumes where it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeAlias
from uuid import UUID

import anyio
import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from mira.cli.place import Server
from mira.clock import Clock
from mira.errors import TooLarge, Unauthorized, Unavailable
from mira.ids import Ids
from mira.messages import wire
from mira.messages.stream import CLOSING, AnyTurnEvent, TurnEvent
from mira.messages.wire import Accepted, FrameError, Ready, ServerFrame, Shutdown, TurnBegun

#: Seconds before the first, second, … attempt to come back; the last one for all that follow.
_PAUSES = (0.2, 0.5, 1.0, 2.0, 4.0)
#: Seconds for a connection to open and for the server's first frame.
_OPEN_WITHIN = 10.0
#: The longest frame taken, in bytes: 64 waiting messages of the greatest length, and more.
_LARGEST = 64 * 1024 * 1024
#: Frames read ahead of whoever shows them. Beyond it the server sees a slow client.
_AHEAD = 256
UNAUTHORIZED = 4401


@dataclass(frozen=True)
class Lost:
    """The connection broke; another attempt follows in `retry_in` seconds."""

    reason: str
    retry_in: float


Item: TypeAlias = ServerFrame | AnyTurnEvent | Lost

_events = msgspec.json.Decoder(AnyTurnEvent)
_frames = msgspec.json.Decoder(ServerFrame)


class _Head(msgspec.Struct):
    type: str
    seq: int | None = None


_heads = msgspec.json.Decoder(_Head)


def decode(raw: str | bytes) -> ServerFrame | AnyTurnEvent | None:
    """Read a frame of the server; None for a kind that this version does not know.

    Raises Unavailable for what is no frame at all.
    """
    try:
        # Both the failing of a turn and the refusal of a frame are of the type `error`: the
        # numbered one is the turn's.
        numbered = _heads.decode(raw).seq is not None
        return _events.decode(raw) if numbered else _frames.decode(raw)
    except msgspec.ValidationError:
        return None
    except msgspec.DecodeError:
        raise Unavailable("What answers there does not speak as MIRA does.") from None


class Line:
    """A line to the conversation. `run` keeps it up; `items` gives what comes. A context manager.

    Every message that `say` was given is sent until the server has accepted it, under the same
    request id, so it becomes one turn whatever breaks. Of every turn that was running or waiting
    when the connection broke the rest is asked for from the event after the last one seen.
    """

    def __init__(self, find: Callable[[], Server], clock: Clock, ids: Ids) -> None:
        """`find` is asked before each attempt, since a restarted server may have moved.

        It raises Unavailable when there is none now.
        """
        self._find = find
        self._clock = clock
        self._ids = ids
        self._socket: ClientConnection | None = None
        self._served = False
        self._unaccepted: dict[str, wire.Send] = {}
        self._open: dict[UUID, int] = {}
        self._send, self.items = anyio.create_memory_object_stream[Item](_AHEAD)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._send.close()
        self.items.close()

    @property
    def connected(self) -> bool:
        return self._socket is not None

    async def run(self, *, give_up_after: float | None = None) -> None:
        """Connect, and again whenever it breaks, until cancelled.

        Raises Unauthorized when the server does not take us, and Unavailable when no connection
        came about for `give_up_after` seconds, if that is given.
        """
        failures, since = 0, self._clock.monotonic()
        while True:
            pause = _PAUSES[min(failures, len(_PAUSES) - 1)] * self._ids.uniform(0.8, 1.2)
            try:
                reason, stay_away = await self._once()
                pause = max(pause, stay_away)
            except Unavailable as error:
                reason = error.detail
            if self._served:
                failures, since = 0, self._clock.monotonic()
            failures += 1
            if give_up_after is not None and self._clock.monotonic() - since >= give_up_after:
                raise Unavailable(reason)
            await self._send.send(Lost(reason, pause))
            await self._clock.sleep(pause)

    def new_request(self) -> str:
        """A request id for a message."""
        return str(self._ids.new())

    async def say(self, content: str, request_id: str, attachments: tuple[UUID, ...] = ()) -> None:
        """Send a message with files by their ids, now or when the connection is back."""
        said = wire.Send(request_id=request_id, content=content, attachments=attachments)
        self._unaccepted[request_id] = said
        if self._socket is not None:
            await self._write(said)

    async def order(self, frame: wire.Cancel | wire.Retry | wire.Confirm) -> None:
        """Send a command. Raises Unavailable when there is no connection now."""
        if self._socket is None:
            raise Unavailable("There is no connection to the server now.")
        await self._write(frame)

    async def _once(self) -> tuple[str, float]:
        """One connection, from its opening to its end: why it ended, and how many seconds the
        server asks us to stay away.

        Raises Unavailable when it cannot be opened.
        """
        self._served = False
        server = self._find()
        try:
            async with connect(
                server.websocket,
                additional_headers={"authorization": f"Bearer {server.token}"},
                compression=None,
                open_timeout=_OPEN_WITHIN,
                close_timeout=1.0,
                max_size=_LARGEST,
                # A proxy in the environment has no business between two programs of one machine.
                proxy=None,
            ) as socket:
                try:
                    return await self._listen(socket)
                finally:
                    # Shielded: whoever leaves still closes the connection, within its time-out.
                    with anyio.CancelScope(shield=True):
                        await socket.close()
        except InvalidStatus as error:
            raise Unavailable(
                f"The server at {server.url} refused the connection "
                f"(status {error.response.status_code})."
            ) from None
        except (OSError, TimeoutError, WebSocketException):
            raise Unavailable(f"The server at {server.url} cannot be reached.") from None
        finally:
            self._socket = None

    async def _listen(self, socket: ClientConnection) -> tuple[str, float]:
        reason, stay_away = "The connection broke.", 0.0
        try:
            while True:
                item = decode(await socket.recv())
                if isinstance(item, Ready):
                    self._served = True
                    self._socket = socket
                    await self._catch_up(item)
                if isinstance(item, Shutdown):
                    reason, stay_away = "The server is stopping.", item.reconnect_after
                elif isinstance(item, FrameError) and not self._served:
                    reason = f"{item.detail} ({item.code})"
                elif isinstance(item, FrameError) and item.code == TooLarge.code:
                    # It names no message, and the connection is closed for it: none is sent again.
                    for request_id in tuple(self._unaccepted):
                        await self._give(msgspec.structs.replace(item, request_id=request_id))
                elif item is not None:
                    await self._give(item)
        except ConnectionClosed as closed:
            if closed.rcvd is not None and closed.rcvd.code == UNAUTHORIZED:
                raise Unauthorized("The server does not let this administrator in.") from None
            return reason, stay_away

    async def _catch_up(self, ready: Ready) -> None:
        """Ask for what was missed, then send what was never accepted."""
        waiting = {turn.turn_id for turn in ready.queued}
        for turn_id, seen in tuple(self._open.items()):
            if turn_id not in waiting:
                await self._write(wire.Resume(turn_id=turn_id, after=seen))
        for said in tuple(self._unaccepted.values()):
            await self._write(said)

    async def _give(self, item: ServerFrame | AnyTurnEvent) -> None:
        self._note(item)
        await self._send.send(item)

    def _note(self, item: ServerFrame | AnyTurnEvent) -> None:
        """Remember what a new connection would have to ask for."""
        match item:
            case Ready():
                for turn in (*item.queued, *((item.active_turn,) if item.active_turn else ())):
                    self._open.setdefault(turn.turn_id, 0)
            case Accepted():
                self._unaccepted.pop(item.request_id, None)
                self._open.setdefault(item.turn_id, 0)
            case TurnBegun():
                self._open.setdefault(item.turn_id, 0)
            case FrameError():
                if item.request_id is not None:
                    self._unaccepted.pop(item.request_id, None)
                elif item.turn_id is not None and item.code == "not_found":
                    self._open.pop(item.turn_id, None)
            case TurnEvent():
                if isinstance(item, CLOSING):
                    self._open.pop(item.turn_id, None)
                elif item.turn_id in self._open:
                    self._open[item.turn_id] = max(self._open[item.turn_id], item.seq)
            case _:
                pass

    async def _write(self, frame: wire.ClientFrame) -> None:
        assert self._socket is not None
        try:
            await self._socket.send(msgspec.json.encode(frame).decode())
        except ConnectionClosed:
            # The reader notices as well; what was to be said is said again on the next connection.
            pass
