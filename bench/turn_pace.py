"""Many streams at a steady pace: does every client get every word soon after it was written?

The double writes word n of a stream at a time that is known: its first byte, and n intervals
later. A text frame's lag is how long after its last word was written it was read. It holds the
pause that merges words into at most thirty frames a second. The streams begin one after another
over some seconds; what is measured is the time in which all of them run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import msgspec

from bench.provider_answer import made_up, pieces
from bench.turn_socket import Socket

#: Seconds beyond the length of the streams after which what is not there counts as lost.
_BEYOND = 60.0
_AT_ONCE = 32


class _Frame(msgspec.Struct):
    type: str
    text: str = ""
    offset: int = 0
    code: str = ""


_decode = msgspec.json.Decoder(_Frame).decode


@dataclass(slots=True)
class Stream:
    """What one client got: (characters so far, when) for each text frame."""

    marker: str
    frames: list[tuple[int, float]] = field(default_factory=list)
    outcome: str = ""
    ended: float = 0.0


class _Follower:
    def __init__(self, stream: Stream) -> None:
        loop = asyncio.get_running_loop()
        self.stream = stream
        self.ready: asyncio.Future[None] = loop.create_future()
        self.over: asyncio.Future[None] = loop.create_future()

    async def connect(self, url: str, key: str) -> None:
        self.socket = await Socket.connect(url, self._heard, self._lost, key=key)
        await self.ready

    def begin(self) -> None:
        marker = self.stream.marker.encode()
        self.socket.send(
            b'{"type":"message","request_id":"%b","content":"[#%b] Tell it slowly."}'
            % (marker, marker)
        )

    def _heard(self, raw: bytes, at: float) -> None:
        frame = _decode(raw)
        match frame.type:
            case "text":
                self.stream.frames.append((frame.offset + len(frame.text), at))
            case "ready":
                self.ready.set_result(None)
            case "complete" | "error":
                self._end(frame.code or frame.type, at)

    def _lost(self, why: str) -> None:
        self._end(why, 0.0)

    def _end(self, outcome: str, at: float) -> None:
        if not self.over.done():
            self.stream.outcome, self.stream.ended = outcome, at
            self.over.set_result(None)


async def follow(url: str, people: list[str], ramp: float, seconds: float) -> list[Stream]:
    """One turn of each of these users, begun within `ramp` seconds and followed to the end."""
    followers = [_Follower(Stream(f"pace-{n}")) for n in range(len(people))]
    pairs = list(zip(followers, people, strict=True))
    for start in range(0, len(pairs), _AT_ONCE):
        await asyncio.gather(*(f.connect(url, key) for f, key in pairs[start : start + _AT_ONCE]))
    loop = asyncio.get_running_loop()
    for number, follower in enumerate(followers):
        loop.call_later(ramp * number / len(followers), follower.begin)
    await asyncio.wait([f.over for f in followers], timeout=ramp + seconds + _BEYOND)
    for follower in followers:
        follower.socket.close()
    return [follower.stream for follower in followers]


def lags(
    streams: Sequence[Stream], stamps: Mapping[str, Mapping[str, Any]], tokens: int, token_ms: float
) -> list[float]:
    """The lag of every text frame in milliseconds, while all streams run; of all frames where the
    server was so late that there was no such time."""
    at_character = {}
    total = 0
    for number, piece in enumerate(pieces(made_up(tokens))):
        total += len(piece)
        at_character[total] = number * token_ms / 1000
    firsts = [float(stamps[stream.marker]["first_byte"]) for stream in streams]
    if not firsts:
        return []
    begin, end = max(firsts), min(firsts) + tokens * token_ms / 1000
    if begin >= end:
        begin, end = min(firsts), inf
    return [
        (at - first - at_character[n]) * 1000
        for stream, first in zip(streams, firsts, strict=True)
        for n, at in stream.frames
        if begin <= at <= end
    ]
