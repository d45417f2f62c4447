"""A client as a person's program would be: one WebSocket, frames as plain dictionaries."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any, Self

from websockets.sync.client import ClientConnection, connect

CLOSING = ("complete", "cancelled", "interrupted", "error")


class Client:
    """A signed-in WebSocket. `ready` is the first frame."""

    def __init__(self, ws_url: str, key: str, *, wait: float = 30.0) -> None:
        self._wait = wait
        self._connection = connect(
            ws_url, additional_headers={"Authorization": f"Bearer {key}"}, open_timeout=wait,
            max_size=None,
        )  # fmt: skip

    def __enter__(self) -> Self:
        self.socket: ClientConnection = self._connection.__enter__()
        self.ready = self.receive()
        assert self.ready["type"] == "ready", self.ready
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.__exit__(kind, error, trace)

    def send(self, type_: str, **fields: Any) -> None:
        self.socket.send(json.dumps({"type": type_, **fields}))

    def receive(self) -> dict[str, Any]:
        """The next frame. Raises TimeoutError, or ConnectionClosed of websockets."""
        frame: dict[str, Any] = json.loads(self.socket.recv(self._wait))
        return frame

    def until(self, *types: str) -> list[dict[str, Any]]:
        """Frames up to and including the first of one of these types."""
        frames = [self.receive()]
        while frames[-1]["type"] not in types:
            frames.append(self.receive())
        return frames

    def say(self, content: str, request_id: str) -> dict[str, Any]:
        """Send a message and return its `accepted` frame (or `error`)."""
        self.send("message", request_id=request_id, content=content)
        return self.until("accepted", "error")[-1]

    def ask(self, content: str, request_id: str) -> str:
        """Send a message and return the whole reply."""
        accepted = self.say(content, request_id)
        assert accepted["type"] == "accepted", accepted
        end = self.until(*CLOSING)[-1]
        while end["turn_id"] != accepted["turn_id"]:  # of an earlier turn, told late
            end = self.until(*CLOSING)[-1]
        assert end["type"] == "complete", end
        reply: str = end["reply"]
        return reply


def spoken(frames: list[dict[str, Any]]) -> str:
    """The text that the frames of one turn amount to, applying attempts and offsets as told."""
    text, attempt = "", 0
    for frame in frames:
        if frame.get("attempt", 0) > attempt:
            text, attempt = "", frame["attempt"]
        if frame["type"] == "text":
            assert frame["offset"] == len(text), (frame, text)
            text += frame["text"]
        elif frame["type"] == "snapshot":
            text = frame["text"]
    return text
