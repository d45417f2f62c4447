"""Load on the real server: closed and open loops of turns over WebSockets.

A closed loop keeps so many turns under way: one that ends begins the next. An open loop begins
turns at random times, whether those before have ended or not; a turn's times count from the
moment at which it was due, so that a server that falls behind cannot hide it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from bench.turn_socket import Socket

#: Handshakes at the same time, while connections are made.
_AT_ONCE = 32
#: Seconds after the end of a loop for turns that are still under way.
DRAIN = 60.0


class _Frame(msgspec.Struct):
    type: str
    turn_id: str | None = None
    code: str = ""
    timings: dict[str, float | None] = {}


_decode = msgspec.json.Decoder(_Frame).decode


@dataclass(slots=True)
class Turn:
    """One turn as its client saw it; times on the monotonic clock, in seconds."""

    marker: str
    due: float
    sent: float = 0.0
    accepted: float = 0.0
    first_text: float = 0.0
    ended: float = 0.0
    outcome: str = ""
    timings: dict[str, float | None] = field(default_factory=dict)


class Talker:
    """One user's connection, with one turn at a time."""

    def __init__(self) -> None:
        self.turn: Turn | None = None
        self.load: Load | None = None
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def connect(self, url: str, key: str) -> None:
        """Connect and sign in. Raises ConnectionError or TimeoutError."""
        self.socket = await Socket.connect(url, self._heard, self._lost, key=key)
        async with asyncio.timeout(30):
            await self._ready

    def say(self, turn: Turn) -> None:
        self.turn = turn
        words = f"[#{turn.marker}] What comes next, and why should we begin with that one?"
        turn.sent = self.socket.send(
            b'{"type":"message","request_id":"%b","content":"%b"}'
            % (turn.marker.encode(), words.encode())
        )

    def _heard(self, text: bytes, at: float) -> None:
        frame = _decode(text)
        turn = self.turn
        match frame.type:
            case "text" if turn is not None:
                turn.first_text = turn.first_text or at
            case "accepted" if turn is not None:
                turn.accepted = at
            case "complete" if turn is not None:
                turn.timings = frame.timings
                self._over("complete", at)
            case "error" | "cancelled" | "interrupted" if turn is not None:
                self._over(frame.code or frame.type, at)
            case "ready":
                self._ready.set_result(None)

    def _lost(self, why: str) -> None:
        if not self._ready.done():
            self._ready.set_exception(ConnectionError(why))
        if self.turn is not None:
            self._over(why, time.monotonic())

    def _over(self, outcome: str, at: float) -> None:
        turn, self.turn = self.turn, None
        assert turn is not None
        turn.ended, turn.outcome = at, outcome
        if self.load is not None:
            self.load.ended(self, turn)


class Load:
    """Hands out turns to idle talkers and collects them when they end."""

    def __init__(self, talkers: list[Talker], name: str) -> None:
        self.turns: list[Turn] = []
        self._name = name
        self._idle = deque(talkers)
        self._late: deque[float] = deque()
        self._under_way = 0
        self._count = 0
        #: The last moment at which a turn may begin, and the same for a turn that follows another.
        self._until = self._closed_until = 0.0
        #: Turns that are still to be begun when another ends; and seconds before that.
        self._left = 0
        self._pause = 0.0
        self._over = asyncio.Event()
        for talker in talkers:
            talker.load = self

    def _begin(self, due: float) -> None:
        if not self._idle:
            self._late.append(due)
            return
        talker = self._idle.popleft()
        self._count += 1
        self._under_way += 1
        turn = Turn(f"{self._name}-{self._count}", due)
        self.turns.append(turn)
        talker.say(turn)

    def ended(self, talker: Talker, turn: Turn) -> None:
        """A turn of this talker is over."""
        self._under_way -= 1
        if not turn.outcome.startswith(("closed", "connection")):
            self._idle.append(talker)
        if self._late and self._idle:
            self._begin(self._late.popleft())
        elif self._left > 0 or turn.ended < self._closed_until:
            self._left -= 1
            if self._pause:
                asyncio.get_running_loop().call_later(self._pause, self._follow)
            else:
                self._begin(turn.ended)
        self._look()

    def _follow(self) -> None:
        """The turn that follows another after a pause, if there is still time."""
        if (now := time.monotonic()) < self._closed_until:
            self._begin(now)
        self._look()

    def _look(self) -> None:
        if self._under_way == 0 and not self._late and time.monotonic() >= self._until:
            self._over.set()

    async def _drain(self) -> list[Turn]:
        try:
            async with asyncio.timeout_at(
                asyncio.get_running_loop().time() + max(0, self._until - time.monotonic()) + DRAIN
            ):
                await self._over.wait()
        except TimeoutError:
            for turn in self.turns:
                if not turn.outcome:
                    turn.ended, turn.outcome = time.monotonic(), "never ended"
        return self.turns

    async def closed(self, concurrency: int, seconds: float, pause: float = 0.0) -> list[Turn]:
        """Keep `concurrency` turns under way for so long, with a pause between each two."""
        self._pause = pause
        self._until = self._closed_until = time.monotonic() + seconds
        for _ in range(concurrency):
            self._begin(time.monotonic())
        return await self._drain()

    async def counted(self, concurrency: int, turns: int) -> list[Turn]:
        """Keep `concurrency` turns under way until so many have ended."""
        self._left = turns - concurrency
        for _ in range(concurrency):
            self._begin(time.monotonic())
        return await self._drain()

    async def open(self, rate: float, seconds: float, seed: int) -> list[Turn]:
        """Begin turns at random, `rate` a second on average (Poisson), for so long."""
        loop, chance = asyncio.get_running_loop(), random.Random(seed)
        offset = time.monotonic() - loop.time()
        at = time.monotonic()
        self._until = at + seconds

        def arrive(due: float) -> None:
            self._begin(due)
            following = due + chance.expovariate(rate)
            if following < self._until:
                loop.call_at(following - offset, arrive, following)

        arrive(at)
        loop.call_at(self._until - offset, self._look)
        return await self._drain()


async def connect(url: str, people: list[str]) -> list[Talker]:
    """A signed-in connection for each key."""
    talkers = [Talker() for _ in people]
    for start in range(0, len(people), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        await asyncio.gather(
            *(t.connect(url, key) for t, key in zip(talkers[some], people[some], strict=True))
        )
    return talkers


def disconnect(talkers: list[Talker]) -> None:
    for talker in talkers:
        talker.load = talker.turn = None
        talker.socket.close()


@dataclass(frozen=True, slots=True)
class Plan:
    """One loop. It lasts for `length` seconds, or, of the kind `count`, for so many turns; `rate`
    is turns a second of an open loop, `pause` seconds between the turns of a closed one."""

    name: str
    kind: Literal["closed", "open", "count"]
    concurrency: int
    length: float
    rate: float = 0.0
    pause: float = 0.0


async def run(
    url: str, people: list[str], plan: Plan, ready: Callable[[], None] | None = None
) -> list[Turn]:
    """Connect, let everybody take one turn, run one loop, disconnect.

    The first turns wake the conversations and are not returned. `ready` is called before the loop.
    """
    talkers = await connect(url, people)
    try:
        await Load(talkers, f"{plan.name}-first").counted(plan.concurrency, len(talkers))
        if ready is not None:
            ready()
        load = Load(talkers, plan.name)
        match plan.kind:
            case "closed":
                return await load.closed(plan.concurrency, plan.length, plan.pause)
            case "count":
                return await load.counted(plan.concurrency, int(plan.length))
            case "open":
                return await load.open(plan.rate, plan.length, seed=len(plan.name))
    finally:
        disconnect(talkers)
