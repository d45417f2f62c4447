"""RFC 9457 problem details: how every failure is told, on every surface.

What is not a MiraError is a bug or the outside world: it is logged with its traceback and told as
`internal`, without a word of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from mira.errors import MiraError, NotFound, TooLarge, ValidationFailed
from mira.telemetry import logger

log = logger("web")

MEDIA_TYPE = "application/problem+json"
_TITLES = {
    "validation_error": "The input is not acceptable",
    "unauthorized": "Who are you?",
    "forbidden": "Not allowed",
    "not_found": "Not found",
    "method_not_allowed": "Method not allowed",
    "conflict": "Conflict",
    "too_large": "Too large",
    "rate_limited": "Too much at once",
    "provider_error": "The model provider failed",
    "unavailable": "Not available now",
    "internal": "Internal error",
}
_STATUS = {
    "validation_error": 422,
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "conflict": 409,
    "too_large": 413,
    "rate_limited": 429,
    "provider_error": 502,
    "unavailable": 503,
}


class FieldError(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with one field."""

    field: str
    detail: str


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Problem details. `code` is for programs, `detail` for people; `request_id` is in the log."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str
    errors: tuple[FieldError, ...] = ()
    #: Seconds after which trying again makes sense, also in the header Retry-After.
    retry_after: float | None = None
    #: Where a turn is concerned: which, and what was written of its answer.
    turn_id: str | None = None
    text: str | None = None


def problem(error: Exception, request_id: str) -> Problem:
    """What a client is told of `error`."""
    if isinstance(error, HTTPException):
        if error.status_code == 405:
            return method_not_allowed(request_id)
        error = _from_http(error)
    if not isinstance(error, MiraError) or error.code not in _TITLES:
        return _problem("internal", 500, "Something went wrong; the log knows more.", request_id)
    retry_after: float | None = getattr(error, "retry_after", None)
    fields = error.fields if isinstance(error, ValidationFailed) else ()
    detail = error.detail if error.status < 500 or error.code != "internal" else _TITLES["internal"]
    return msgspec.structs.replace(
        _problem(error.code, error.status, detail, request_id),
        errors=tuple(FieldError(field=name, detail=text) for name, text in fields),
        retry_after=retry_after,
    )


def turn_problem(
    code: str, detail: str, request_id: str, turn_id: str, text: str | None = None
) -> Problem:
    """What a client that waited for a turn is told when it ended without an answer."""
    status = _STATUS.get(code, 500)
    return msgspec.structs.replace(
        _problem(code if status != 500 else "internal", status, detail, request_id),
        turn_id=turn_id,
        text=text,
    )


def method_not_allowed(request_id: str) -> Problem:
    """What a client is told that asks a known address for what it does not do."""
    detail = "This address does not answer that method."
    return _problem("method_not_allowed", 405, detail, request_id)


def respond(told: Problem, *, allow: Iterable[str] = ()) -> Response:
    """The response that carries `told`; `allow` are the methods that the address answers."""
    headers = {"allow": ", ".join(sorted(allow))} if allow else {}
    if told.retry_after is not None:
        headers["retry-after"] = str(max(1, math.ceil(told.retry_after)))
    if told.status == 401:
        headers["www-authenticate"] = 'Bearer realm="mira"'
    return Response(msgspec.json.encode(told), told.status, headers=headers, media_type=MEDIA_TYPE)


def report(error: Exception) -> None:
    """Log `error`: its code, or, for what nobody foresaw, its traceback."""
    if isinstance(error, MiraError):
        level = log.warning if error.status >= 500 else log.info
        level("request_refused", code=error.code, error=type(error).__name__)
    else:
        log.error("request_failed", error=type(error).__name__, exc_info=error)


def _from_http(error: HTTPException) -> MiraError:
    """The error of ours that says the same as one of the framework's."""
    match error.status_code:
        case 404:
            return NotFound("There is nothing at this address.")
        case 413:
            return TooLarge("The request is too large.")
        case status if 400 <= status < 500:
            return ValidationFailed("The request is not acceptable.")
        case _:
            return MiraError()


def _problem(code: str, status: int, detail: str, request_id: str) -> Problem:
    return Problem(
        type=f"urn:mira:problem:{code}",
        title=_TITLES[code],
        status=status,
        detail=detail,
        code=code,
        request_id=request_id,
    )
