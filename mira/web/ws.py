"""`/v1/ws`: the handshake, signing in, and the end of a WebSocket.

What is said in between is in mira.web.ws_session. One task reads, one writes. Frames are sent
through ASGI directly: this is the path that every word takes to every client.
"""

from __future__ import annotations

from uuid import UUID

import anyio
import msgspec
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from mira.errors import (
    Forbidden,
    MiraError,
    RateLimited,
    Unauthorized,
    Unavailable,
    ValidationFailed,
)
from mira.messages import wire
from mira.messages.stream import AnyTurnEvent
from mira.messages.wire import Auth, ClientFrame, FrameError, ServerFrame
from mira.telemetry import logger
from mira.web import problems
from mira.web.auth import Principal, session_token
from mira.web.buckets import TokenBucket
from mira.web.connections import INTERNAL, POLICY, TOO_BIG, TRY_LATER, UNAUTHORIZED, End
from mira.web.context import Context
from mira.web.middleware import REQUEST_ID
from mira.web.origin import is_ours
from mira.web.reading import in_words
from mira.web.ws_session import Session

log = logger("web")

#: How long a last frame and the close frame may take.
_FAREWELL = 2.0


class WebSocketDoor:
    """The ASGI application at `/v1/ws`."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await Connection(self._context, scope, receive, send).run()


class Connection:
    """One WebSocket, from handshake to close."""

    def __init__(self, context: Context, scope: Scope, receive: Receive, send: Send) -> None:
        self.context = context
        self.id: str = scope[REQUEST_ID]
        self.user_id: UUID | None = None
        self.sending_since: float | None = None
        #: The newest event that was sent, for the hint where to resume.
        self.newest: AnyTurnEvent | None = None
        self._headers = Headers(scope=scope)
        self._receive = receive
        self._asgi_send = send
        # Bound once: every frame passes here.
        self._connections = context.connections
        self._now = context.services.clock.monotonic
        self._sending = 0
        self._scope = anyio.CancelScope()
        self._why: End | None = None
        self._gone = False
        limits = context.services.limits
        self._bucket = TokenBucket(limits.frames_rate, limits.frames_burst, self._now())

    async def run(self) -> None:
        """Serve it to its end. Raises nothing but cancellation."""
        await self._receive()  # websocket.connect
        try:
            self._check_origin()
            self._connections.add(self)
        except MiraError as error:
            await self._reject(error)
            return
        try:
            with self._scope:
                await self._asgi_send({"type": "websocket.accept"})
                await self._serve()
        finally:
            self._connections.remove(self)
        if not self._gone:
            await self._say_farewell()

    # What the keeper of connections calls.

    def end(self, why: End) -> None:
        """Close it; the first reason stands."""
        if self._why is None:
            self._why = why
            self._scope.cancel()

    def slow(self) -> End:
        """Why it is dropped when it is too slow."""
        hint = (
            f"too slow: resume {self.newest.turn_id} after {self.newest.seq}"
            if self.newest
            else "too slow"
        )
        return End(TRY_LATER, hint)

    # What the session calls.

    async def send(self, text: str) -> None:
        """Send one frame; waits while the client's window is full."""
        self.sending_since = self._now()
        self._sending += 1
        try:
            await self._asgi_send({"type": "websocket.send", "text": text})
        finally:
            self._sending -= 1
            self.sending_since = self._now() if self._sending else None
        self._connections.frames_sent += 1

    async def send_frame(self, frame: ServerFrame) -> None:
        await self.send(wire.encode(frame).decode())

    async def receive(self) -> ClientFrame | None:
        """The next frame; None once the client has left or is being closed.

        Bad frames are answered here and do not count as frames.
        """
        limits = self.context.services.limits
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                self._gone = True
                return None
            self._connections.frames_received += 1
            if self._bucket.take(self._now()) > 0.0:
                flood = FrameError(code="rate_limited", detail="Too many frames at once.")
                self.end(End(POLICY, "too many frames", flood))
                return None
            text = message.get("text")
            if text is None:
                await self.refuse(ValidationFailed("Frames are JSON text, not binary."))
                continue
            if len(text) > limits.frame or (
                len(text) * 4 > limits.frame and len(text.encode()) > limits.frame
            ):
                large = FrameError(
                    code="too_large", detail=f"A frame may have at most {limits.frame} bytes."
                )
                self.end(End(TOO_BIG, "frame too large", large))
                return None
            try:
                return wire.decode_frame(text)
            except msgspec.ValidationError as error:
                await self.refuse(ValidationFailed(_reason(error)), request_id=_request_id(text))
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                await self.refuse(ValidationFailed("This frame is not valid JSON."))

    async def refuse(
        self, error: Exception, *, request_id: str | None = None, turn_id: UUID | None = None
    ) -> None:
        """Answer a frame that could not be done; the connection stays."""
        problems.report(error)
        await self.send_frame(_frame_error(error, request_id, turn_id))

    def fail(self, error: Exception) -> None:
        """Close because of something that no frame of the client caused."""
        problems.report(error)
        later = isinstance(error, Unavailable | RateLimited)
        code, reason = (TRY_LATER, "try again later") if later else (INTERNAL, "internal error")
        self.end(End(code, reason, _frame_error(error)))

    # The handshake and the end.

    def _check_origin(self) -> None:
        origin = self._headers.get("origin")
        allowed = self.context.services.settings.allowed_origins
        if origin is not None and not is_ours(origin, self._headers.get("host", ""), allowed):
            raise Forbidden("A page of another origin may not connect.")

    async def _serve(self) -> None:
        try:
            principal = await self._sign_in()
            if principal is None:
                return
            principal.need("read")
            self._connections.claim(self, principal.user_id)
            forget = self.context.auth.watch(principal, self._revoked)
        except MiraError as error:
            self._refuse_sign_in(error)
            return
        except Exception as error:
            self.fail(error)
            return
        try:
            await Session(self, principal).run()
        except Exception as error:
            self.fail(error)
        finally:
            forget()

    async def _sign_in(self) -> Principal | None:
        """By header, cookie, or the first good frame. None once the client has left."""
        auth = self.context.auth
        if "authorization" in self._headers or session_token(self._headers) is not None:
            return await auth.of_headers(self._headers)
        with anyio.move_on_after(self.context.services.limits.auth_within):
            while True:
                frame = await self.receive()
                if frame is None:
                    return None
                if isinstance(frame, Auth):
                    return await auth.of_key(frame.key)
                await self.refuse(Unauthorized("Send the frame auth with your key first."))
        raise Unauthorized("No key was sent in time.")

    def _refuse_sign_in(self, error: MiraError) -> None:
        if isinstance(error, Unauthorized):
            problems.report(error)
            self.end(End(UNAUTHORIZED, "unauthorized", _frame_error(error)))
        else:
            self.fail(error)

    def _revoked(self) -> None:
        gone = FrameError(
            code="unauthorized", detail="This key was revoked, or the session closed."
        )
        self.end(End(UNAUTHORIZED, "unauthorized", gone))

    async def _say_farewell(self) -> None:
        why = self._why or End(INTERNAL, "internal error")
        log.info("ws_closed", code=why.code, user_id=str(self.user_id or ""))
        with anyio.move_on_after(_FAREWELL, shield=True):
            if why.frame is not None:
                await self.send_frame(why.frame)
        with anyio.move_on_after(_FAREWELL, shield=True):
            await self._asgi_send(
                {"type": "websocket.close", "code": why.code, "reason": why.reason}
            )

    async def _reject(self, error: MiraError) -> None:
        """Answer the handshake with problem details instead of a WebSocket."""
        problems.report(error)
        told = problems.respond(problems.problem(error, self.id))
        headers = [*told.raw_headers, (b"x-request-id", self.id.encode())]
        await self._asgi_send(
            {
                "type": "websocket.http.response.start",
                "status": told.status_code,
                "headers": headers,
            }
        )
        await self._asgi_send({"type": "websocket.http.response.body", "body": told.body})


def _frame_error(
    error: Exception, request_id: str | None = None, turn_id: UUID | None = None
) -> FrameError:
    told = problems.problem(error, "")
    return FrameError(
        code=told.code,
        detail=told.detail,
        request_id=request_id,
        turn_id=turn_id,
        retry_after=told.retry_after,
    )


def _reason(error: msgspec.ValidationError) -> str:
    field, text = in_words(error)
    return f"{field}: {text}." if field else f"{text}."


class _Loose(msgspec.Struct):
    request_id: object = None


def _request_id(text: str) -> str | None:
    """The request_id of a frame that is wrong elsewhere, so that its sender can tell which."""
    try:
        found = msgspec.json.decode(text, type=_Loose).request_id
    except (msgspec.MsgspecError, RecursionError):
        return None
    return found if isinstance(found, str) and len(found) <= 200 else None
