"""One endpoint of the HTTP surface as data: routing, checks and the OpenAPI document read it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import UUID

import msgspec
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp

from mira.errors import NotFound
from mira.store.keys import Scope
from mira.web.auth import Principal
from mira.web.context import Context
from mira.web.services import WebServices

Q = TypeVar("Q")
B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class Call(Generic[Q, B]):
    """One request, checked: who asks, the decoded query and body."""

    context: Context
    request: Request
    request_id: str
    query: Q
    body: B
    caller: Principal | None

    @property
    def services(self) -> WebServices:
        return self.context.services

    @property
    def principal(self) -> Principal:
        """Who asks, at an endpoint with a scope."""
        assert self.caller is not None
        return self.caller

    @property
    def user_id(self) -> UUID:
        return self.principal.user_id

    @property
    def headers(self) -> Headers:
        return self.request.headers

    def id(self, name: str) -> UUID:
        """A UUID in the path. Raises NotFound for what is none: nothing has such an id."""
        try:
            return UUID(self.request.path_params[name])
        except ValueError:
            raise NotFound("There is nothing with this id.") from None


#: What a handler returns: a model, sent as JSON; None, sent as 204; or a finished response.
Handler = Callable[[Call[Any, Any]], Awaitable[msgspec.Struct | ASGIApp | None]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A method at a path. `scope` is what a caller must hold; None is open to all.

    `answer` is the model of success, a media type for what is no JSON, or None for an empty one.
    `optional` lets the body be missing. `hidden` keeps it out of the OpenAPI document.
    """

    method: str
    path: str
    handler: Handler
    summary: str
    scope: Scope | None
    answer: type[msgspec.Struct] | str | None
    query: type[msgspec.Struct] | None = None
    body: type[msgspec.Struct] | None = None
    #: The body is bytes of any kind, at most so many.
    raw: int | None = None
    optional: bool = False
    status: int = 200
    #: Statuses of problem details beside those that any endpoint of its kind may answer.
    problems: tuple[int, ...] = ()
    #: Statuses of success beside `status`, with the model or media type of each.
    also: Mapping[int, type[msgspec.Struct] | str] | None = None
    hidden: bool = False
    #: The answer may also be a stream of events, if the request asks for it.
    streams: bool = False
    #: The answer has no end of its own, or the request may be made once: never for HEAD.
    headless: bool = False
