"""The surfaces put together: one ASGI application from the ports it needs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import groupby

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

import mira
from mira.web import openapi, pages, problems
from mira.web.auth import Authenticator
from mira.web.buckets import RateLimiter
from mira.web.connections import Connections
from mira.web.context import Context
from mira.web.encoding import Encoded
from mira.web.endpoint import Call, Endpoint
from mira.web.health import Health
from mira.web.http import ENDPOINTS
from mira.web.metrics import Metrics
from mira.web.middleware import REQUEST_ID, Surface
from mira.web.resource import Resource
from mira.web.services import WebServices
from mira.web.wanted import Wanted
from mira.web.ws import WebSocketDoor


def build(services: WebServices) -> Starlette:
    """The application. Its lifespan must run: it watches over the WebSockets.

    When `services.stop` is set, every WebSocket is told and closed, and none is taken any more.
    """
    context = _context(services)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(context.connections.run)
            yield
            tasks.cancel_scope.cancel()

    app = Starlette(
        routes=_routes(context),
        middleware=[
            Middleware(
                Surface,
                door=WebSocketDoor(context),
                path="/v1/ws",
                ids=services.ids,
                clock=services.clock,
                metrics=context.metrics,
            )
        ],
        exception_handlers={HTTPException: _no_such_thing},
        lifespan=lifespan,
    )
    # Every resource has one address.
    app.router.redirect_slashes = False
    return app


async def _no_such_thing(request: Request, error: Exception) -> Response:
    """What the router itself refuses: an unknown address, or a method of a page."""
    return problems.respond(problems.problem(error, request.scope[REQUEST_ID]))


def _context(services: WebServices) -> Context:
    limits = services.limits
    connections = Connections(services.clock, limits, services.stop)

    def numbers() -> dict[str, float]:
        return {**services.engine(), **connections.numbers()}

    return Context(
        services=services,
        auth=Authenticator(services),
        limiter=RateLimiter(
            services.cache, services.clock, rate=limits.requests_rate, burst=limits.requests_burst
        ),
        encoded=Encoded(),
        wanted=Wanted(),
        metrics=Metrics(numbers),
        health=Health(services.checks, services.clock, limits.check_within),
        connections=connections,
        began=services.clock.monotonic(),
    )


def _routes(context: Context) -> list[BaseRoute]:
    described = openapi.document(ENDPOINTS, mira.__version__)

    async def document(_call: Call[None, None]) -> Response:
        return Response(described, media_type="application/json")

    own = Endpoint(
        "GET", "/openapi.json", document, "This document", scope=None,
        answer="application/json", hidden=True,
    )  # fmt: skip
    return [
        *(_resource(context, found) for found in _by_path((*ENDPOINTS, own))),
        *pages.routes(),
    ]


def _resource(context: Context, endpoints: Sequence[Endpoint]) -> Route:
    resource = Resource(context, endpoints)
    return Route(resource.path, resource, name=resource.path)


def _by_path(endpoints: Sequence[Endpoint]) -> list[list[Endpoint]]:
    ordered = sorted(endpoints, key=lambda endpoint: endpoint.path)
    return [list(group) for _, group in groupby(ordered, key=lambda endpoint: endpoint.path)]
