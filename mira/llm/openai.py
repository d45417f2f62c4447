"""OpenAI's chat completions, or any endpoint that speaks them, through the official SDK.

The SDK makes the call; the body goes as bytes and the stream is read as it is on the wire, since
the SDK's model objects cost more than all the rest. Endpoints differ in what they take. Where one
refuses a parameter that it does not know, the provider remembers, leaves it out and asks again. A
stream without a finish reason is an outage.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

import anyio
import httpx2
import msgspec

from mira.clock import Clock
from mira.errors import ContextOverflow, ProviderError, ProviderMalformed, ProviderRejected
from mira.llm import failures
from mira.llm.base import Dropped, ProviderItem, Request
from mira.llm.connection import Connection, KeySource
from mira.llm.openai_answer import Answer, decode_chunk
from mira.llm.openai_request import parameters
from mira.llm.sse import Events
from mira.llm.text import has_images, in_words

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream

_encode = msgspec.json.Encoder().encode

PROVIDER = "openai"
OFFICIAL = "https://api.openai.com/v1"
#: Seconds in which a connection must be made, and a stream closed; and in which a server may end
#: a stream whose last event is there.
_CONNECT, _CLOSE, _DRAIN = 10.0, 2.0, 0.2
#: Window assumed of OpenAI's own models and of others, tokens. The second is a careful guess:
#: an endpoint that holds less says so, and the request is cut.
_WINDOW, _WINDOW_ELSEWHERE = 400_000, 32_768
_NO_REASONING_WITH_TOOLS = "reasoning with tools"
#: An endpoint that sees no images at all says so in these words, or that contents must be strings.
_BLIND = re.compile(
    r"support.{0,40}image|image.{0,40}support|vision|multi-?modal|content.{0,40}(string|type)",
    re.IGNORECASE,
)
_IMAGES = "images"
#: A refusal that speaks of the form asked for the answer.
_FORM = re.compile(r"response_format|json_schema")


def connect(
    key: KeySource,
    base_url: str | None = None,
    *,
    provider: str = PROVIDER,
    silence: float = 120.0,
    transport: httpx2.AsyncBaseTransport | None = None,
) -> Connection[AsyncOpenAI]:
    """The connection of all models of one endpoint. `silence` bounds the wait for a byte, seconds.

    A base address without a path gets `/v1`. `transport` replaces the network.
    """
    base = base_url.rstrip("/") if base_url else None
    if base and not urlsplit(base).path:
        base += "/v1"

    # Reading all certificates takes half a second: once, not for each client.
    certificates = lru_cache(httpx2.create_ssl_context)

    def network(sdk: Any) -> Any:
        return sdk.DefaultAsyncHttpxClient(
            timeout=httpx2.Timeout(connect=_CONNECT, read=silence, write=silence, pool=silence),
            limits=httpx2.Limits(max_connections=4000, max_keepalive_connections=400),
            **({"transport": transport} if transport else {"verify": certificates()}),
        )

    def make(sdk: Any, secret: str, base: str | None) -> AsyncOpenAI:
        http = network(sdk)
        client: AsyncOpenAI = sdk.AsyncOpenAI(
            api_key=secret,
            base_url=base or OFFICIAL,
            max_retries=0,
            timeout=http.timeout,
            http_client=http,
        )
        return client

    def another(client: AsyncOpenAI) -> AsyncOpenAI:
        import openai

        return client.with_options(http_client=network(openai))

    return Connection(provider, "openai", make, another, key, base)


class OpenAIProvider:
    """One model of an endpoint. An empty `model` stands for the one that the endpoint offers.

    `options` are further parameters, sent with every call.
    """

    def __init__(
        self,
        model: str,
        connection: Connection[AsyncOpenAI],
        clock: Clock,
        *,
        window: int = 0,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self._options = dict(options or {})
        self._connection = connection
        self._provider = connection.provider
        self._clock = clock
        official = connection.base_url in (None, OFFICIAL)
        self._window = window or (_WINDOW if official else _WINDOW_ELSEWHERE)
        #: What this endpoint does not take, as learned: names of parameters.
        self._refuses: set[str] = set() if official else {"max_completion_tokens"}

    @property
    def name(self) -> str:
        return f"{self._provider}:{self.model or 'offered'}"

    @property
    def window(self) -> int:
        return self._window

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[ProviderItem]]:
        async with self._connection.call() as client:
            if not self.model:
                self.model = await self._offered(client)
            chunks, dropped = await self._open(client, request)
            items = self._read(chunks, request, dropped)
            try:
                yield items
            finally:
                with anyio.move_on_after(_CLOSE, shield=True):
                    await items.aclose()
                    await chunks.close()

    async def _open(
        self, client: AsyncOpenAI, request: Request
    ) -> tuple[AsyncStream[object], list[str]]:
        import openai

        try:
            blind = _IMAGES in self._refuses and has_images(request)
            while True:
                seen = in_words(request) if blind else request
                wanted, dropped = parameters(self.model, self.name, seen)
                if blind:
                    dropped.append(_IMAGES)
                wanted.update(self._options)
                dropped += self._adapt(wanted)
                try:
                    return await _create(client, wanted), dropped
                except (openai.BadRequestError, openai.UnprocessableEntityError) as refusal:
                    # Ends: each round learns a lesson that was not known, and there are few.
                    if has_images(seen) and self._refuses_images(refusal):
                        blind = True
                    elif not self._learn(refusal, wanted):
                        raise
        except Exception as error:
            self._fail(error)

    def _adapt(self, wanted: dict[str, Any]) -> list[str]:
        """Leave out what the endpoint is known to refuse. Returns what the caller should know."""
        dropped: list[str] = []
        if "max_completion_tokens" in self._refuses:
            limit = wanted.pop("max_completion_tokens")
            if "max_tokens" not in self._refuses:
                wanted["max_tokens"] = limit
        if "stream_options" in self._refuses:
            del wanted["stream_options"]
        if "response_format" in self._refuses and wanted.pop("response_format", None):
            dropped.append("answer_schema")
        if "reasoning_effort" in self._refuses:
            if wanted.pop("reasoning_effort", None):
                dropped.append("effort")
        elif "tools" in wanted and _NO_REASONING_WITH_TOOLS in self._refuses:
            if wanted.get("reasoning_effort"):
                dropped.append("effort")
            wanted["reasoning_effort"] = "none"
        return dropped

    def _refuses_images(self, refusal: Any) -> bool:
        """Whether the refusal is about images; that of all of them is remembered."""
        if isinstance(failures.of_answer(PROVIDER, 400, refusal.body), ContextOverflow):
            return False
        if _BLIND.search(refusal.message):
            self._refuses.add(_IMAGES)
            return True
        return "image" in refusal.message.lower()

    def _learn(self, refusal: Any, wanted: dict[str, Any]) -> bool:
        """Whether the refusal names a parameter that the next attempt can do without."""
        if isinstance(failures.of_answer(PROVIDER, 400, refusal.body), ContextOverflow):
            return False
        named = f"{refusal.param or ''} {refusal.message}"
        if _FORM.search(named) and "response_format" in wanted:
            self._refuses.add("response_format")
            return True
        for name in ("reasoning_effort", "stream_options", "max_completion_tokens", "max_tokens"):
            if name not in named:
                continue
            lesson = name
            with_tools = name == "reasoning_effort" and "tools" in wanted
            if with_tools and _NO_REASONING_WITH_TOOLS not in self._refuses:
                # Newer models of OpenAI take tools here only with reasoning switched off.
                lesson = _NO_REASONING_WITH_TOOLS
            if name == "max_tokens" and "max_tokens" not in wanted:
                continue
            if lesson in self._refuses:
                continue
            if lesson == "max_tokens":
                self._refuses.discard("max_completion_tokens")
            self._refuses.add(lesson)
            return True
        return False

    async def _read(
        self, stream: AsyncStream[object], request: Request, dropped: list[str]
    ) -> AsyncGenerator[ProviderItem, None]:
        for what in dropped:
            yield Dropped(what)
        answer = Answer(self._provider, self.model, shows_thinking=request.thinking)
        events = Events(self._provider)
        pieces = stream.response.aiter_bytes()
        done = False
        try:
            while not done and (piece := await anext(pieces, None)) is not None:
                for name, data in events.feed(piece):
                    if done := data.startswith(b"[DONE]"):
                        break
                    if name == b"error":
                        self._raise_event(data)
                    chunk = decode_chunk(data)
                    if chunk.error:
                        self._raise_event(data)
                    for item in answer.take(chunk):
                        yield item
        except (GeneratorExit, ProviderError):
            raise
        except Exception as error:
            self._fail(error)
        if done:
            await _drain(pieces)
        yield answer.finished(request)

    def _raise_event(self, data: bytes) -> NoReturn:
        """Raise what an error inside the stream means."""
        try:
            body: object = msgspec.json.decode(data)
        except msgspec.DecodeError:
            body = data.decode("utf-8", "replace")
        raise failures.of_answer(self._provider, None, body)

    async def _offered(self, client: AsyncOpenAI) -> str:
        """The model to use where only an address was given. Raises ProviderRejected in doubt."""
        try:
            page = await client.models.list()
        except Exception as error:
            self._fail(error)
        names = [m.id for m in page.data if "embed" not in m.id.lower()]
        if names and (len(names) == 1 or not self._connection.keyed):
            return names[0]
        raise ProviderRejected(
            f"{self._provider} offers {len(names)} models and MIRA_MODEL names none of them.",
            provider=self._provider,
            http_status=404,
        )

    def _fail(self, error: Exception) -> NoReturn:
        import openai

        provider = self._provider
        if isinstance(error, openai.APIStatusError):
            raise failures.of_answer(
                provider,
                error.status_code,
                error.body,
                headers=error.response.headers,
                clock=self._clock,
            ) from None
        if isinstance(error, (openai.APITimeoutError, httpx2.TimeoutException)):
            raise failures.silent(provider) from None
        if isinstance(error, openai.APIConnectionError):
            raise failures.unreachable(provider) from None
        if isinstance(error, httpx2.HTTPError):
            raise failures.broken_off(provider) from None
        if isinstance(error, openai.APIResponseValidationError | ValueError):
            raise ProviderMalformed(
                f"{provider} sent what is no chunk of its protocol.", provider=provider
            ) from None
        if isinstance(error, openai.APIError):
            raise failures.of_answer(provider, None, error.body) from None
        raise error

    async def warm(self) -> None:
        client = await self._connection.client()
        if not self.model:
            self.model = await self._offered(client)

    async def probe(self) -> None:
        """Ask for the list of models. An endpoint that lacks one has answered, too."""
        client = await self._connection.client()
        try:
            try:
                await client.models.list()
            except Exception as error:
                self._fail(error)
        except ProviderRejected as refusal:
            if refusal.http_status not in (404, 405, 501):
                raise

    async def refresh(self) -> bool:
        return await self._connection.refresh()

    async def aclose(self) -> None:
        await self._connection.aclose()


async def _drain(pieces: AsyncIterator[bytes]) -> None:
    """Read what follows the last event, so that the connection can be used again."""
    try:
        with anyio.move_on_after(_DRAIN):
            async for _ in pieces:
                pass
    except httpx2.HTTPError:
        pass  # the answer is whole


async def _create(client: AsyncOpenAI, wanted: dict[str, Any]) -> AsyncStream[object]:
    import openai

    stream: AsyncStream[object] = await client.post(
        "/chat/completions",
        content=_encode({**wanted, "stream": True}),
        options={"headers": {"content-type": "application/json"}},
        cast_to=object,
        stream=True,
        stream_cls=openai.AsyncStream[object],
    )
    return stream
