"""What a provider's failure becomes: one tree, with no word of the request in it."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from mira.errors import (
    ContextOverflow,
    ProviderError,
    ProviderMalformed,
    ProviderOutage,
    ProviderRejected,
)
from mira.llm.base import Provider
from tests.contract.llm_support import Server, ask, claude, gpt, hear, refusal, sse

pytestmark = pytest.mark.anyio

SECRETS = "Grandmother's xylophone sk-test-very-secret"


def _claude(kind: str, message: str = SECRETS) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def _gpt(kind: str | None, code: str | None = None, message: str = SECRETS) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


async def fails(provider: Provider) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        await hear(provider, ask())
    await provider.aclose()
    for secret in SECRETS.split():
        assert secret not in str(raised.value)
    # Nor is there an error behind it that a traceback would print.
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__ or raised.value.__context__ is None
    return raised.value


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (400, _claude("invalid_request_error"), ProviderRejected),
        (400, _claude("invalid_request_error", "prompt is too long: 9 tokens"), ContextOverflow),
        (400, _claude("invalid_request_error", "exceed context limit: 9 > 8"), ContextOverflow),
        (401, _claude("authentication_error"), ProviderRejected),
        (402, _claude("billing_error"), ProviderRejected),
        (403, _claude("permission_error"), ProviderRejected),
        (404, _claude("not_found_error"), ProviderRejected),
        (408, _claude("timeout_error"), ProviderOutage),
        (413, _claude("request_too_large"), ContextOverflow),
        (429, _claude("rate_limit_error"), ProviderOutage),
        (500, _claude("api_error"), ProviderOutage),
        (503, "upstream connect error", ProviderOutage),
        (504, _claude("timeout_error"), ProviderOutage),
        (529, _claude("overloaded_error"), ProviderOutage),
    ],
)
async def test_an_error_status_of_anthropic_has_a_meaning(
    status: int, body: Any, error: type[ProviderError]
) -> None:
    raised = await fails(claude(Server(refusal(status, body))))
    assert type(raised) is error
    assert raised.http_status == status
    assert raised.provider == "anthropic"
    assert str(status) in raised.detail


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (400, _gpt("invalid_request_error"), ProviderRejected),
        (400, _gpt("invalid_request_error", "context_length_exceeded"), ContextOverflow),
        (400, _gpt("exceed_context_size_error"), ContextOverflow),
        (400, _gpt("BadRequestError", None, "maximum context length is 8"), ContextOverflow),
        (400, "plain words", ProviderRejected),
        (401, _gpt("invalid_request_error", "invalid_api_key"), ProviderRejected),
        (404, _gpt("invalid_request_error", "model_not_found"), ProviderRejected),
        (429, _gpt("requests", "rate_limit_exceeded"), ProviderOutage),
        (429, _gpt("insufficient_quota", "insufficient_quota"), ProviderRejected),
        (500, _gpt("server_error"), ProviderOutage),
        (502, "<html>bad gateway</html>", ProviderOutage),
    ],
)
async def test_an_error_status_of_openai_has_a_meaning(
    status: int, body: Any, error: type[ProviderError]
) -> None:
    raised = await fails(gpt(Server(refusal(status, body))))
    assert type(raised) is error
    assert raised.http_status == status
    assert raised.provider == "openai"


@pytest.mark.parametrize("make", [claude, gpt])
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after_ms": "250", "retry_after": "1"}, 0.25),
        ({"retry_after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry_after": "soon"}, None),
        ({}, None),
    ],
)
async def test_the_wait_that_is_asked_for_is_kept(
    make: Any, headers: dict[str, str], seconds: float | None
) -> None:
    body = _claude("rate_limit_error")
    raised = await fails(make(Server(refusal(429, body, **headers))))
    assert raised.retry_after == seconds


@pytest.mark.parametrize("make", [claude, gpt])
@pytest.mark.parametrize(
    "fault",
    [
        httpx2.ConnectError("refused"),
        httpx2.ConnectTimeout("slow"),
        httpx2.ReadTimeout("silent"),
        httpx2.RemoteProtocolError("gone"),
        httpx2.PoolTimeout("full"),
    ],
)
async def test_a_network_that_fails_is_an_outage(make: Any, fault: Exception) -> None:
    raised = await fails(make(Server(fault)))
    assert type(raised) is ProviderOutage


@pytest.mark.parametrize("make", [claude, gpt])
async def test_an_answer_that_is_no_stream_at_all_is_no_answer(make: Any) -> None:
    raised = await fails(make(Server(sse("<html>Welcome to the hotel network</html>"))))
    assert type(raised) in (ProviderOutage, ProviderMalformed)


@pytest.mark.parametrize("make", [claude, gpt])
async def test_a_probe_takes_any_answer_for_a_sign_of_life_but_an_outage(make: Any) -> None:
    provider = make(Server(refusal(404, {}), refusal(529, {}), refusal(401, {})))
    await provider.probe()
    with pytest.raises(ProviderOutage):
        await provider.probe()
    with pytest.raises(ProviderRejected):
        await provider.probe()
    await provider.aclose()


@pytest.mark.parametrize("make", [claude, gpt])
async def test_the_sdk_does_not_retry_by_itself(make: Any) -> None:
    server = Server(refusal(500, {}), refusal(500, {}))
    await fails(make(server))
    assert len(server.bodies) == 1
