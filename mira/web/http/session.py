"""Signing a browser in and out."""

from __future__ import annotations

from html import escape

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from mira.errors import Forbidden, Unauthorized
from mira.store import keys
from mira.store.keys import Holder
from mira.web.auth import COOKIE, session_token
from mira.web.endpoint import Call, Endpoint
from mira.web.models import SessionRequest, SessionView, SigninLink
from mira.web.origin import is_ours, made_here

_SPENT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>MIRA</title>
<h1>This link no longer works</h1><p>{}</p>
<p>Make another one with <code>mira signin</code>.</p></html>"""


async def who(call: Call[None, None]) -> SessionView:
    asking = call.principal
    return SessionView(user_id=asking.user_id, scope=asking.scope, source=asking.source)


async def sign_in(call: Call[None, SessionRequest]) -> Response:
    services = call.services
    origin = call.headers.get("origin")
    if origin is not None and not is_ours(
        origin, call.headers.get("host", ""), services.settings.allowed_origins
    ):
        raise Forbidden("A page of another origin may not sign in here.")
    asking = await call.context.auth.of_key(call.body.key.strip())
    holder = Holder(user_id=asking.user_id, scope=asking.scope, key_id=asking.key_id)
    async with services.database.engine() as tx:
        token, expires_at = await keys.open_session(tx, services.ids, holder, services.clock.now())
    view = SessionView(
        user_id=asking.user_id, scope=asking.scope, source="session", expires_at=expires_at
    )
    response = Response(msgspec.json.encode(view), media_type="application/json")
    _set_cookie(call.request, response, token)
    return response


async def sign_out(call: Call[None, None]) -> Response:
    """Open to all: a session that is over can still be forgotten by the browser."""
    token = session_token(call.headers)
    if token is not None:
        if not made_here(call.headers, call.services.settings.allowed_origins):
            raise Forbidden("A page of another origin may not sign out here.")
        async with call.services.database.engine() as tx:
            await keys.close_session(tx, token)
        call.context.auth.session_closed(token)
    response = Response(status_code=204)
    response.delete_cookie(
        COOKIE, path="/", secure=_secure(call.request), httponly=True, samesite="strict"
    )
    return response


async def make_link(call: Call[None, None]) -> SigninLink:
    services = call.services
    now = services.clock.now()
    async with services.database.engine() as tx:
        token = await keys.create_link(tx, services.ids, call.user_id, now)
    base = str(call.request.base_url).rstrip("/")
    return SigninLink(url=f"{base}/signin/{token}", expires_at=now + keys.LINK_LIFETIME)


async def use_link(call: Call[None, None]) -> Response:
    services = call.services
    if "prefetch" in call.headers.get("sec-purpose", call.headers.get("purpose", "")):
        # A browser that only guesses must not use the link up.
        return JSONResponse({}, 503)
    now = services.clock.now()
    try:
        async with services.database.engine() as tx:
            user_id = await keys.redeem_link(tx, call.request.path_params["token"], now)
            holder = Holder(user_id=user_id, scope="admin", key_id=None)
            token, _ = await keys.open_session(tx, services.ids, holder, now)
    except Unauthorized as error:
        return Response(_SPENT.format(escape(error.detail)), 401, media_type="text/html")
    response = RedirectResponse("/", 303)
    _set_cookie(call.request, response, token)
    return response


def _set_cookie(request: Request, response: Response, token: str) -> None:
    response.set_cookie(
        COOKIE,
        token,
        max_age=int(keys.SESSION_LIFETIME.total_seconds()),
        path="/",
        secure=_secure(request),
        httponly=True,
        samesite="strict",
    )


def _secure(request: Request) -> bool:
    # What a proxy says here can only make the cookie stricter.
    return "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))


ENDPOINTS = (
    Endpoint("GET", "/v1/session", who, "Who you are here", scope="read", answer=SessionView),
    Endpoint("POST", "/v1/session", sign_in, "Exchange a key for a session cookie",
             scope=None, body=SessionRequest, answer=SessionView, problems=(401, 403)),
    Endpoint("POST", "/v1/session/logout", sign_out, "End the session of this browser",
             scope=None, answer=None, status=204, problems=(403,)),
    Endpoint("POST", "/v1/signin", make_link,
             "Make an address that signs a browser in as you, once, within ten minutes",
             scope="admin", answer=SigninLink),
    Endpoint("GET", "/signin/{token}", use_link, "Sign in with such an address",
             scope=None, answer=None, hidden=True, headless=True),
)  # fmt: skip
