"""Answers in a given form: asked of providers that have it; left out, and said, elsewhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mira.llm.base import Effort
from tests.contract.llm_support import Server, ask, claude, gpt, hear, recorded, refusal

pytestmark = pytest.mark.anyio
SCHEMA = '{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}'


def _refuses(words: str) -> Any:
    return refusal(400, {"error": {"type": "invalid_request_error", "message": words}})


async def test_claude_is_asked_for_the_form_beside_the_effort() -> None:
    server = Server(recorded("anthropic", "plain"))
    provider = claude(server)
    heard = await hear(provider, ask(answer_schema=SCHEMA, effort=Effort.LOW))
    await provider.aclose()
    assert server.bodies[0]["output_config"] == {
        "effort": "low",
        "format": {"type": "json_schema", "schema": json.loads(SCHEMA)},
    }
    assert heard.dropped == []


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        ("claude-haiku-4-5", True),
        ("claude-opus-4-1-20250805", True),
        ("claude-opus-4-20250514", False),
        ("claude-sonnet-4-20250514", False),
        ("somebody-elses-model", False),
    ],
)
async def test_a_model_that_lacks_forms_is_asked_without_and_that_is_said(
    model: str, takes: bool
) -> None:
    server = Server(recorded("anthropic", "plain"))
    provider = claude(server, model)
    heard = await hear(provider, ask(answer_schema=SCHEMA))
    await provider.aclose()
    assert ("output_config" in server.bodies[0]) is takes
    assert heard.dropped == ([] if takes else ["answer_schema"])


async def test_a_form_that_claude_refuses_is_left_out_and_the_answer_comes() -> None:
    server = Server(
        _refuses("output_config.format.schema: Schema is too complex."),
        recorded("anthropic", "plain"),
    )
    provider = claude(server)
    heard = await hear(provider, ask(answer_schema=SCHEMA, effort=Effort.LOW))
    await provider.aclose()
    assert server.bodies[1]["output_config"] == {"effort": "low"}
    assert heard.dropped == ["answer_schema"]
    assert heard.text


async def test_an_openai_endpoint_is_asked_for_a_strict_form() -> None:
    server = Server(recorded("openai", "plain"))
    provider = gpt(server)
    heard = await hear(provider, ask(answer_schema=SCHEMA))
    await provider.aclose()
    form = server.bodies[0]["response_format"]
    assert form["type"] == "json_schema"
    assert form["json_schema"]["strict"] is True
    assert form["json_schema"]["schema"] == json.loads(SCHEMA)
    assert heard.dropped == []


async def test_an_endpoint_that_refuses_forms_is_not_asked_again() -> None:
    plain = recorded("openai", "plain")
    server = Server(
        _refuses("response_format is not supported"), plain, recorded("openai", "plain")
    )
    provider = gpt(server, base_url="http://localhost:1/v1")
    for _ in range(2):
        heard = await hear(provider, ask(answer_schema=SCHEMA))
        assert heard.dropped == ["answer_schema"]
    await provider.aclose()
    assert ["response_format" in body for body in server.bodies] == [True, False, False]
