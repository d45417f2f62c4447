"""The small local model: it needs no key and no network, so that a first conversation works.

Spoken to through the adapter of OpenAI's protocol. It is slow at reading and knows no tools, so
it gets little: a short system prompt, and as much of the recent conversation as it reads in a
few seconds. What it does not get is said in Dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

import msgspec

from mira.clock import Clock
from mira.errors import ContextOverflow
from mira.llm import openai
from mira.llm.base import Dropped, ProviderItem, Request, SystemBlock
from mira.llm.local_child import SLOT_TOKENS
from mira.llm.local_server import LocalServer
from mira.llm.text import has_images, in_words
from mira.messages.content import Role, Said, Text

PROVIDER, MODEL = "local", "smollm2"

LOCAL_NOTICE = (
    "You are talking to a very small model that runs on this machine, for trying MIRA out: "
    "it knows little and is often wrong. For a real one set ANTHROPIC_API_KEY or OPENAI_API_KEY, "
    "or OPENAI_BASE_URL for a server of your own (or `mira secret set anthropic_api_key`)."
)

#: Stands in for a system prompt that is too long for it.
SYSTEM = "You are MIRA, a friendly assistant. Answer briefly and plainly."

#: Longest system prompt passed on, and longest prompt in all, tokens: what it reads in five
#: seconds on a quiet machine, and before the deadline for a first word on a busy one.
_SYSTEM_TOKENS = 350
PROMPT_TOKENS = 700
_OUTPUT_TOKENS = 512
#: How often the prompt is halved when it turns out too long all the same.
_CUTS = 3


class LocalProvider:
    """The local model, with a server that is started at first use, or by `warm`."""

    def __init__(
        self, server: LocalServer, clock: Clock, *, prompt_tokens: int = PROMPT_TOKENS
    ) -> None:
        self._server = server
        self._prompt_tokens = prompt_tokens
        self._clock = clock
        self._inner: openai.OpenAIProvider | None = None
        self._url = ""

    @property
    def name(self) -> str:
        return f"{PROVIDER}:{MODEL}"

    @property
    def window(self) -> int:
        return SLOT_TOKENS

    async def warm(self) -> None:
        """Start the server, so that the first answer need not wait for it."""
        await (await self._client()).warm()

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[ProviderItem]]:
        inner = await self._client()
        async with AsyncExitStack() as stack:
            room = self._prompt_tokens
            for left in range(_CUTS, -1, -1):
                cut, dropped = fit(request, room)
                try:
                    items = await stack.enter_async_context(inner.stream(cut))
                    break
                except ContextOverflow:
                    if not left:
                        raise
                    room //= 2
            async with aclosing(_with(dropped, items)) as answer:
                yield answer

    async def _client(self) -> openai.OpenAIProvider:
        url = await self._server.url()
        if self._inner is None or url != self._url:
            if self._inner is not None:
                await self._inner.aclose()
            connection = openai.connect(_no_key, url, provider=PROVIDER)
            self._inner = openai.OpenAIProvider(
                MODEL,
                connection,
                self._clock,
                window=SLOT_TOKENS,
                options={
                    "temperature": 0.2,
                    "top_p": 0.9,
                    "extra_body": {"repeat_penalty": 1.1},
                },
            )
            self._url = url
        return self._inner

    async def probe(self) -> None:
        await (await self._client()).probe()

    async def refresh(self) -> bool:
        return False

    async def aclose(self) -> None:
        """End the server."""
        inner, self._inner = self._inner, None
        if inner is not None:
            await inner.aclose()
        await self._server.aclose()


def fit(request: Request, room: int) -> tuple[Request, list[str]]:
    """The request as far as it fits into `room` tokens, and what a user may miss of it.

    Messages go oldest first. The newest message of the user stays, if need be shortened to its
    end.
    """
    dropped: list[str] = []
    if has_images(request):
        dropped.append("images")
    request = in_words(request)
    if request.tools:
        dropped.append("tools")
    system = "\n\n".join(block.text for block in request.system if block.text.strip())
    if _size(system) > min(_SYSTEM_TOKENS, room / 2):
        system = SYSTEM
        dropped.append("most of the system prompt")
    left: float = room - _size(system)
    kept: list[Said] = []
    spoken = [m for m in request.messages if _words(m)]
    for message in reversed(spoken):
        size = _size(_words(message))
        if size > left:
            if any(m.role is Role.USER for m in kept):
                break
            if message.role is not Role.USER:
                continue
            kept.append(_end_of(message, left))
            dropped.append("part of the message")
            break
        kept.append(message)
        left -= size
    # A conversation begins with the user.
    while len(kept) > 1 and kept[-1].role is not Role.USER:
        kept.pop()
    if len(kept) < len(spoken):
        dropped.append("earlier messages")
    if len(spoken) < len(request.messages):
        dropped.append("tool results")
    return (
        msgspec.structs.replace(
            request,
            system=(SystemBlock(text=system),) if system else (),
            messages=tuple(reversed(kept)),
            tools=(),
            effort=None,
            thinking=False,
            cache_marks=(),
            max_output_tokens=min(request.max_output_tokens, _OUTPUT_TOKENS),
        ),
        dropped,
    )


def _words(message: Said) -> str:
    return "\n\n".join(b.text for b in message.blocks if isinstance(b, Text) and b.text.strip())


def _size(text: str) -> float:
    """About how many tokens `text` is for this model.

    Its tokenizer knows English words; digits and signs are tokens of their own, and of other
    scripts it spells out nearly every byte.
    """
    tokens = 0.0
    for sign, count in Counter(text).items():
        if not sign.isascii():
            tokens += count * 0.75 * len(sign.encode("utf-8", "replace"))
        elif sign.isalpha():
            tokens += count / 3.5
        else:
            tokens += count / 4 if sign == " " else count
    return tokens


def _end_of(message: Said, room: float) -> Said:
    """The message with as much of its end as fits."""
    words = _words(message)[-int(room * 4) :]
    fits = len(words)
    while fits > 1 and (size := _size(words[-fits:])) > room:
        fits = max(1, int(fits * min(0.95, room / size)))
    return Said(role=message.role, blocks=(Text(text=words[-fits:]),))


async def _with(
    dropped: list[str], items: AsyncIterator[ProviderItem]
) -> AsyncGenerator[ProviderItem, None]:
    for what in dropped:
        yield Dropped(what)
    async for item in items:
        yield item


async def _no_key() -> str | None:
    return None
