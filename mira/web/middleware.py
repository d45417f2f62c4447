"""Around every request: its id, its log fields, its headers, its numbers, and the last catch."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mira.clock import Clock
from mira.ids import Ids
from mira.telemetry import bound
from mira.web import problems
from mira.web.metrics import Metrics

#: Where the request's id stands in the ASGI scope, and the route's path for the metrics.
REQUEST_ID = "mira.request_id"
ROUTE = "mira.route"

#: For everything that is no page of its own: nothing may be loaded, framed or guessed.
_DEFAULTS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Surface:
    """Pure ASGI. WebSockets go from here to their door with an id alone: they say what happens in
    frames, and what the framework would wrap around each of these is felt by every client."""

    def __init__(
        self, app: ASGIApp, *, door: ASGIApp, path: str, ids: Ids, clock: Clock, metrics: Metrics
    ) -> None:
        self._app = app
        self._door = door
        self._path = path
        self._ids = ids
        self._clock = clock
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        request_id = scope[REQUEST_ID] = str(self._ids.new())
        with bound(request_id=request_id):
            if scope["type"] == "websocket":
                app = self._door if scope["path"] == self._path else self._app
                await app(scope, receive, send)
            else:
                await self._http(scope, receive, send, request_id)

    async def _http(self, scope: Scope, receive: Receive, send: Send, request_id: str) -> None:
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = request_id
                for name, value in _DEFAULTS.items():
                    headers.setdefault(name, value)
            await send(message)

        began = self._clock.monotonic()
        try:
            await self._app(scope, receive, send_with_headers)
        except Exception as error:
            problems.report(error)
            if status:
                raise  # Half an answer is out: only breaking it off tells the client.
            told = problems.respond(problems.problem(error, request_id))
            await told(scope, receive, send_with_headers)
        finally:
            route = scope.get(ROUTE, "none")
            self._metrics.requests.labels(route, scope["method"], str(status)).inc()
            self._metrics.seconds.labels(route).observe(self._clock.monotonic() - began)
