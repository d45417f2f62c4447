"""Talking to adapters in tests: requests, collected answers, recorded streams."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import msgspec

from bench.provider_double import ProviderDouble
from mira.clock import SystemClock
from mira.llm import anthropic, openai
from mira.llm.anthropic import AnthropicProvider
from mira.llm.base import (
    Dropped,
    Finished,
    Metered,
    Provider,
    ProviderItem,
    Request,
    SystemBlock,
    TextDelta,
    ThinkingDelta,
    ToolCalling,
)
from mira.llm.openai import OpenAIProvider
from mira.messages.content import Block, Role, Said, Shown, Text, ToolUse
from mira.messages.tool import ToolDescription

STREAMS = Path(__file__).parent / "streams"
CLAUDE, GPT = "claude-sonnet-5-5", "gpt-6.1-terra"

WEATHER = ToolDescription(
    name="weather",
    description="The weather in a city.",
    parameters='{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}',
)


async def no_key() -> str | None:
    return None


async def a_key() -> str | None:
    return "sk-test-very-secret"


def user(*said: str | Shown) -> Said:
    blocks = (Text(text=one) if isinstance(one, str) else one for one in said)
    return Said(role=Role.USER, blocks=tuple(blocks))


def assistant(*blocks: Block) -> Said:
    return Said(role=Role.ASSISTANT, blocks=blocks)


def tool(*blocks: Block) -> Said:
    return Said(role=Role.TOOL, blocks=blocks)


def ask(*messages: Said, system: str = "Be brief.", **fields: Any) -> Request:
    blocks = (SystemBlock(text=system, cache=True),) if system else ()
    given = messages or (user("Good morning."),)
    return Request(**{"system": blocks, "messages": given, "thinking": True, **fields})


@dataclass
class Heard:
    """One answer: all its items, and views of them."""

    items: list[ProviderItem]

    @property
    def finished(self) -> Finished:
        last = self.items[-1]
        assert isinstance(last, Finished)
        assert sum(isinstance(item, Finished) for item in self.items) == 1
        return last

    @property
    def text(self) -> str:
        return "".join(i.text for i in self.items if isinstance(i, TextDelta))

    @property
    def thinking(self) -> str:
        return "".join(i.text for i in self.items if isinstance(i, ThinkingDelta))

    @property
    def callings(self) -> list[tuple[str, str]]:
        return [(i.call_id, i.name) for i in self.items if isinstance(i, ToolCalling)]

    @property
    def dropped(self) -> list[str]:
        return [i.what for i in self.items if isinstance(i, Dropped)]

    @property
    def metered(self) -> list[Metered]:
        return [i for i in self.items if isinstance(i, Metered)]

    @property
    def uses(self) -> list[ToolUse]:
        return [b for b in self.finished.blocks if isinstance(b, ToolUse)]


async def hear(provider: Provider, request: Request) -> Heard:
    """The whole answer to a request."""
    async with provider.stream(request) as items:
        return Heard([item async for item in items])


class Server:
    """The provider's end of a connection without a network; keeps what it was sent."""

    def __init__(self, *answers: httpx2.Response | Exception) -> None:
        self._answers = list(answers)
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[httpx2.Headers] = []
        self.transport = httpx2.MockTransport(self._answer)

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.headers.append(request.headers)
        if request.content:
            self.bodies.append(msgspec.json.decode(request.content))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def sse(content: bytes | str) -> httpx2.Response:
    """An answer that streams `content`."""
    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=content)


def recorded(provider: str, name: str) -> httpx2.Response:
    return sse((STREAMS / provider / f"{name}.sse").read_bytes())


def refusal(status: int, body: Any, **headers: str) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(status, headers=named, json=body)


def claude(server: Server, model: str = CLAUDE, base_url: str | None = None) -> AnthropicProvider:
    connection = anthropic.connect(a_key, base_url, transport=server.transport)
    return AnthropicProvider(model, connection, SystemClock())


def gpt(server: Server, model: str = GPT, base_url: str | None = None) -> OpenAIProvider:
    connection = openai.connect(a_key, base_url, transport=server.transport)
    return OpenAIProvider(model, connection, SystemClock())


def claude_at(double: ProviderDouble, tail: str = "", model: str = CLAUDE) -> AnthropicProvider:
    """A Claude behind a double's address."""
    connection = anthropic.connect(no_key, double.url + tail, transport=_plain())
    return AnthropicProvider(model, connection, SystemClock())


def gpt_at(double: ProviderDouble, tail: str = "", model: str = "double-1") -> OpenAIProvider:
    """A GPT behind a double's address."""
    connection = openai.connect(no_key, double.url + tail, transport=_plain())
    return OpenAIProvider(model, connection, SystemClock())


def _plain() -> httpx2.AsyncHTTPTransport:
    # As ever, but without reading all certificates for each test.
    return httpx2.AsyncHTTPTransport(
        verify=False, limits=httpx2.Limits(max_connections=4000, max_keepalive_connections=400)
    )


async def to_claude(*messages: Said, model: str = CLAUDE, **fields: Any) -> dict[str, Any]:
    server = Server(recorded("anthropic", "plain"))
    provider = claude(server, model)
    await hear(provider, ask(*messages, **fields))
    await provider.aclose()
    return server.bodies[0]


async def to_gpt(*messages: Said, base_url: str | None = None, **fields: Any) -> dict[str, Any]:
    server = Server(recorded("openai", "plain"))
    provider = gpt(server, base_url=base_url)
    await hear(provider, ask(*messages, **fields))
    await provider.aclose()
    return server.bodies[0]
