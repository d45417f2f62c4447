"""Alive, and ready. Neither needs a key."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from mira.web.endpoint import Call, Endpoint
from mira.web.models import Live, Readiness


async def live(_call: Call[None, None]) -> Live:
    return Live(status="ok")


async def ready(call: Call[None, None]) -> Response:
    """503 when a part without which nothing can be answered is down."""
    found = await call.context.health.ready()
    return Response(
        msgspec.json.encode(found),
        503 if found.status == "down" else 200,
        media_type="application/json",
    )


ENDPOINTS = (
    Endpoint("GET", "/v1/health/live", live, "Whether the process answers",
             scope=None, answer=Live),
    Endpoint("GET", "/v1/health/ready", ready,
             "Whether it can do its work: ok, degraded, or down with 503; per component",
             scope=None, answer=Readiness, also={503: Readiness}),
)  # fmt: skip
