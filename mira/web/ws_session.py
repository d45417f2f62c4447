"""A signed-in WebSocket: the client's frames done in order, the user's turns told live."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast
from uuid import UUID

import anyio

from mira.actors.feeds import FeedItem
from mira.errors import Conflict, MiraError, NotFound, RateLimited
from mira.messages.stream import CLOSING, AnyTurnEvent, ThinkingAdded
from mira.messages.wire import (
    Accepted,
    Ack,
    AskConfirm,
    Auth,
    Cancel,
    ClientFrame,
    Confirm,
    Ping,
    Pong,
    Ready,
    Resume,
    Retry,
    Send,
    TurnBegun,
    encode,
)
from mira.web.auth import Principal

if TYPE_CHECKING:
    from mira.web.ws import Connection

_CLOSING = frozenset(CLOSING)
_PONG = encode(Pong()).decode()
#: Turns that one connection may resume at the same time.
_MOST_RESUMED = 8
#: Turn ids remembered for order and against repetition.
_MOST_REMEMBERED = 512


class Session:
    """What a signed-in client gets: `ready`, then for each turn every event once, in order.

    `accepted` comes before the first event of its turn. The turn that runs at connect is held
    back for a moment: a client that resumes it gets what it has not seen, any other one all.
    """

    def __init__(self, connection: Connection, principal: Principal) -> None:
        self._connection = connection
        self._principal = principal
        context = connection.context
        self._context = context
        self._clock = context.services.clock
        self._conversations = context.services.conversations
        #: Turns whose events this client may get: announced to it, and not over.
        self._announced: set[UUID] = set()
        #: An accept is going on: events of a turn not announced wait for it.
        self._accepting: anyio.Event | None = None
        #: Turns served from their own log, and so not from the feed; and what was sent of those
        #: that were, so that the feed does not repeat it.
        self._resumed: dict[UUID, anyio.CancelScope] = {}
        self._sent: dict[UUID, int] = {}

    async def run(self) -> None:
        """Serve until the client leaves."""
        user_id = self._principal.user_id
        # The feed is opened before the standing is read: nothing can fall between.
        async with self._conversations.feed(user_id, source=self._connection.id) as feed:
            standing = await self._conversations.standing(user_id)
            self._announced.update(turn.turn_id for turn in standing.queued)
            if standing.active is not None:
                self._announced.add(standing.active.turn_id)
            await self._connection.send_frame(
                Ready(
                    user_id=user_id,
                    active_turn=standing.active,
                    queued=standing.queued,
                    confirmations=standing.confirmations,
                )
            )
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                if standing.active is not None:
                    wait = self._context.services.limits.resume_within
                    self._resume(standing.active.turn_id, 0, wait)
                tasks.start_soon(self._tell, feed)
                await self._listen()
                tasks.cancel_scope.cancel()

    # From the client.

    async def _listen(self) -> None:
        while (frame := await self._connection.receive()) is not None:
            request_id = frame.request_id if isinstance(frame, Send) else None
            turn_id = frame.turn_id if isinstance(frame, Cancel | Retry | Resume) else None
            try:
                await self._do(frame)
            except Exception as error:
                await self._connection.refuse(error, request_id=request_id, turn_id=turn_id)

    async def _do(self, frame: ClientFrame) -> None:
        user_id = self._principal.user_id
        match frame:
            case Ping():
                await self._connection.send(_PONG)
            case Resume():
                self._resume(frame.turn_id, frame.after)
            case Ack():
                raise NotFound("There is no such notification.")
            case Auth():
                raise Conflict("You are signed in already.")
            case Send():
                await self._may_speak()
                await self._accept(frame)
            case Cancel():
                self._principal.need("chat")
                await self._conversations.cancel(user_id, frame.turn_id)
            case Retry():
                await self._may_speak()
                await self._retry(frame)
            case Confirm():
                self._principal.need("chat")
                await self._conversations.confirm(user_id, frame.action_id, frame.allow)

    async def _may_speak(self) -> None:
        self._principal.need("chat")
        await self._context.limiter.take(self._principal.bucket)

    async def _accept(self, frame: Send) -> None:
        with self._before_events():
            receipt = await self._conversations.accept(
                self._principal.user_id,
                request_id=frame.request_id,
                content=frame.content,
                attachments=frame.attachments,
                source=self._connection.id,
            )
            turn_id = receipt.turn_id
            if frame.include_thinking:
                self._context.wanted.add(turn_id)
            await self._connection.send_frame(
                Accepted(
                    turn_id=turn_id, request_id=receipt.request_id, duplicate=receipt.duplicate
                )
            )
            if receipt.duplicate and turn_id not in self._announced:
                self._resume(turn_id, 0)
            self._announce(turn_id)

    async def _retry(self, frame: Retry) -> None:
        with self._before_events():
            receipt = await self._conversations.retry(
                self._principal.user_id, frame.turn_id, source=self._connection.id
            )
            await self._connection.send_frame(
                Accepted(turn_id=receipt.turn_id, request_id=receipt.request_id)
            )
            self._announce(frame.turn_id)

    @contextmanager
    def _before_events(self) -> Iterator[None]:
        """What is sent inside goes before the events of a turn that was not announced."""
        self._accepting = anyio.Event()
        try:
            yield
        finally:
            self._accepting.set()
            self._accepting = None

    # To the client.

    async def _tell(self, feed: AsyncIterator[tuple[FeedItem, ...]]) -> None:
        """Every word to every client passes here: kinds are told by type, which is cheap, and
        what only a few events need is asked only of those."""
        try:
            async for batch in feed:
                for item in batch:
                    if type(item) is TurnBegun:
                        self._announce(item.turn_id)
                    elif (
                        self._accepting is not None or self._resumed or self._sent
                    ) and not await self._due(item):
                        continue
                    await self._send(item)
        except Exception as error:
            self._connection.fail(error)

    async def _due(self, item: FeedItem) -> bool:
        """Whether the feed's item is to be sent; waits for the `accepted` that goes before it."""
        if isinstance(item, TurnBegun | AskConfirm):
            return True
        turn_id = item.turn_id
        while self._accepting is not None and turn_id not in self._announced:
            await self._accepting.wait()
        return turn_id not in self._resumed and item.seq > self._sent.get(turn_id, 0)

    async def _send(self, item: FeedItem) -> None:
        text = self._context.encoded.text(item)
        kind = type(item)
        if kind is TurnBegun or kind is AskConfirm:
            await self._connection.send(text)
            return
        event = cast(AnyTurnEvent, item)
        if kind is ThinkingAdded and event.turn_id not in self._context.wanted:
            return
        self._connection.newest = event
        await self._connection.send(text)
        if kind in _CLOSING:
            self._announced.discard(event.turn_id)
            self._sent.pop(event.turn_id, None)

    def _announce(self, turn_id: UUID) -> None:
        if len(self._announced) >= _MOST_REMEMBERED:
            self._announced.clear()
        self._announced.add(turn_id)

    # Resuming.

    def _resume(self, turn_id: UUID, after: int, wait: float = 0.0) -> None:
        """Serve a turn from its own log from now on, instead of from the feed."""
        running = self._resumed.get(turn_id)
        if running is not None:
            running.cancel()
        elif len(self._resumed) >= _MOST_RESUMED:
            raise RateLimited("Too many turns are being resumed at once.", retry_after=1.0)
        scope = self._resumed[turn_id] = anyio.CancelScope()
        self._tasks.start_soon(self._follow, turn_id, after, wait, scope)

    async def _follow(
        self, turn_id: UUID, after: int, wait: float, scope: anyio.CancelScope
    ) -> None:
        sent = after
        with scope:
            try:
                if wait:
                    await self._clock.sleep(wait)
                async with self._conversations.follow(
                    self._principal.user_id, turn_id, after
                ) as batches:
                    async for batch in batches:
                        for event in batch:
                            await self._send(event)
                            sent = event.seq
            except Exception as error:
                if isinstance(error, MiraError) and not error.outage:
                    await self._connection.refuse(error, turn_id=turn_id)
                else:
                    self._connection.fail(error)
        if self._resumed.get(turn_id) is scope:
            del self._resumed[turn_id]
            if len(self._sent) >= _MOST_REMEMBERED:
                self._sent.clear()
            self._sent[turn_id] = sent
