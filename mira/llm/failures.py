"""What a provider's failure means: statuses, error types and network faults as our error tree.

What a provider writes in an error may quote the request. It is read here to tell a full window
from other refusals, and goes no further: details hold a status and an error type, nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

from mira.clock import Clock
from mira.errors import (
    ContextOverflow,
    ProviderError,
    ProviderOutage,
    ProviderRejected,
)

#: Error types that say "not now", whatever the status around them.
_PASSING = frozenset(
    {"api_error", "overloaded_error", "rate_limit_error", "server_error", "timeout_error"}
)
#: Error types that say "too long", in the dialects of OpenAI, llama.cpp and others.
_TOO_LONG = frozenset({"context_length_exceeded", "exceed_context_size_error", "request_too_large"})
_TOO_LONG_WORDS = re.compile(
    r"prompt is too long|maximum context length|context (?:length|window|limit|size)"
    r"|exceed\w* the (?:available )?context|too many (?:input )?tokens|input is too long",
    re.IGNORECASE,
)
#: Sent with status 429, yet waiting does not help: the account is spent.
_SPENT = frozenset({"insufficient_quota", "billing_error", "billing_hard_limit_reached"})
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]{0,47}")

TOO_EARLY = frozenset({408, 409, 425, 429, 499})


def of_answer(
    provider: str,
    status: int | None,
    body: object,
    *,
    headers: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> ProviderError:
    """The error for an answer that is an error, or for an error event inside a stream.

    `status` is None or 200 for an event inside a stream: then the type decides, and an unknown
    type counts as an outage, since the request itself had been accepted.
    """
    kind, words = _kind(body)
    wait = _retry_after(headers or {}, clock)
    inside = status is None or status < 400
    label = "error in the stream" if inside else str(status)
    name = f", {kind}" if kind else ""

    def made(cls: type[ProviderError], sentence: str) -> ProviderError:
        return cls(
            f"{provider} {sentence} ({label}{name}).",
            provider=provider,
            http_status=None if inside else status,
            retry_after=wait,
        )

    if (
        kind in _TOO_LONG
        or status == 413
        or (status in (None, 200, 400) and _TOO_LONG_WORDS.search(words))
    ):
        return made(ContextOverflow, "says that the request is longer than its model can read")
    if kind in _SPENT:
        return made(ProviderRejected, "says that the account has no credit left")
    if kind in _PASSING or inside:
        if inside and kind.startswith("invalid_"):
            return made(ProviderRejected, "refused the request")
        return made(ProviderOutage, "cannot answer at present")
    assert status is not None
    if status >= 500 or status in TOO_EARLY:
        return made(ProviderOutage, "cannot answer at present")
    if status in (401, 403):
        return made(ProviderRejected, "refused the key")
    if status == 404:
        return made(ProviderRejected, "does not know the model or the address")
    return made(ProviderRejected, "refused the request")


def unreachable(provider: str) -> ProviderOutage:
    """No connection could be made, or it broke before an answer."""
    return ProviderOutage(f"{provider} cannot be reached.", provider=provider)


def silent(provider: str) -> ProviderOutage:
    """The provider sent nothing for too long."""
    return ProviderOutage(f"{provider} went silent.", provider=provider)


def broken_off(provider: str) -> ProviderOutage:
    """The stream ended before the answer did."""
    return ProviderOutage(f"{provider} broke off in the middle of the answer.", provider=provider)


def _kind(body: object) -> tuple[str, str]:
    """The error type and the words of an error body, in whichever shape it came."""
    error: Any = body
    if isinstance(body, Mapping) and isinstance(body.get("error"), (Mapping, str)):
        error = body["error"]
    if isinstance(error, Mapping):
        code, kind, words = error.get("code"), error.get("type"), error.get("message")
        if isinstance(code, str) and code in (_TOO_LONG | _SPENT):
            kind = code
        name = kind if isinstance(kind, str) else code if isinstance(code, str) else ""
        return (name if _NAME.fullmatch(name) else ""), words if isinstance(words, str) else ""
    return "", error if isinstance(error, str) else ""


def _retry_after(headers: Mapping[str, str], clock: Clock | None) -> float | None:
    """Seconds from `retry-after-ms` or `retry-after` (a number, or a date if there is a clock)."""
    for name, divisor in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) / divisor
        except ValueError:
            seconds = _until(value, clock)
        if 0 <= seconds < float("inf"):
            return seconds
    return None


def _until(date: str, clock: Clock | None) -> float:
    try:
        then = parsedate_to_datetime(date)
    except (ValueError, TypeError):
        return -1.0
    if clock is None:
        return -1.0
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return max(0.0, (then - clock.now()).total_seconds())
