"""One path with its methods: who asks, whether they may, how often, and what they sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from mira.errors import MiraError
from mira.web import problems, reading
from mira.web.context import Context
from mira.web.endpoint import Call, Endpoint
from mira.web.middleware import REQUEST_ID, ROUTE

_encode = msgspec.json.Encoder().encode


class Resource:
    """The ASGI application at one path. Failures are problem details; see mira.web.problems."""

    def __init__(self, context: Context, endpoints: Sequence[Endpoint]) -> None:
        self._context = context
        self.path = endpoints[0].path
        self._by_method = {endpoint.method: endpoint for endpoint in endpoints}
        get = self._by_method.get("GET")
        if get is not None and not get.headless:
            self._by_method["HEAD"] = get

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[ROUTE] = self.path
        request = Request(scope, receive)
        endpoint = self._by_method.get(request.method)
        limit = (endpoint and endpoint.raw) or self._context.services.limits.body
        body = reading.Body(receive, request.headers.get("content-length"), limit)
        response: ASGIApp
        try:
            response = await self._answer(request, endpoint, body)
        except ClientDisconnect:
            return
        except Exception as error:
            # An answer that comes while the client still sends is lost with the connection.
            await body.drain()
            response = self._refuse(error, scope)
        try:
            await response(scope, receive, send)
        except MiraError as error:
            # A stream that could not begin: nothing was sent yet, or it would not raise.
            await self._refuse(error, scope)(scope, receive, send)

    async def _answer(
        self, request: Request, endpoint: Endpoint | None, body: reading.Body
    ) -> ASGIApp:
        if endpoint is None:
            told = problems.method_not_allowed(request.scope[REQUEST_ID])
            await body.drain()
            return problems.respond(told, allow=self._by_method)
        caller = None
        if endpoint.scope is not None:
            caller = await self._context.auth.of_request(request.headers, request.method)
            caller.need(endpoint.scope)
            await self._context.limiter.take(caller.bucket)
        query: Any = reading.query(request.query_params, endpoint.query) if endpoint.query else None
        decoded: Any = None
        if endpoint.body is not None:
            raw = await body.read()
            if raw or not endpoint.optional:
                kind = request.headers.get("content-type")
                decoded = reading.json_body(raw, kind, endpoint.body)
        elif endpoint.raw is not None:
            decoded = await body.read(within=reading.FILE_WITHIN)
        answer = await endpoint.handler(
            Call(
                context=self._context,
                request=request,
                request_id=request.scope[REQUEST_ID],
                query=query,
                body=decoded,
                caller=caller,
            )
        )
        if answer is None:
            return Response(status_code=204)
        if isinstance(answer, msgspec.Struct):
            return Response(_encode(answer), endpoint.status, media_type="application/json")
        return answer

    def _refuse(self, error: Exception, scope: Scope) -> Response:
        problems.report(error)
        return problems.respond(problems.problem(error, scope[REQUEST_ID]))
