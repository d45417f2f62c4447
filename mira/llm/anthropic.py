"""Anthropic's Messages API, or any endpoint that speaks it, through the official SDK.

The SDK makes the call; the body goes as bytes and the stream is read as it is on the wire, since
the SDK's model objects cost more than all the rest. What the SDK does not tell is looked after
here: a stream that ends without `message_stop` is an outage, and so are the network's own errors,
which it lets through as they are.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

import anyio
import httpx2
import msgspec

from mira.clock import Clock
from mira.errors import ProviderError, ProviderMalformed, ProviderRejected
from mira.llm import failures
from mira.llm.anthropic_answer import PROVIDER, Answer, decode_event
from mira.llm.anthropic_request import (
    parameters,
    window_of,
    without_schema,
    without_thinking,
)
from mira.llm.base import (
    Dropped,
    ProviderItem,
    Request,
)
from mira.llm.connection import Connection, KeySource
from mira.llm.sse import Events
from mira.llm.text import in_words

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic, AsyncStream

_encode = msgspec.json.Encoder().encode

#: A refusal that speaks of a file, and one of the form asked for the answer.
_FILES = re.compile(r"image|document|pdf|media_type|base64", re.IGNORECASE)
_FORM = re.compile(r"output_config|output_format|schema|structured output")
#: Seconds in which a connection must be made, and a stream closed.
_CONNECT, _CLOSE = 10.0, 2.0


def connect(
    key: KeySource,
    base_url: str | None = None,
    *,
    silence: float = 120.0,
    transport: httpx2.AsyncBaseTransport | None = None,
) -> Connection[AsyncAnthropic]:
    """The connection of all Anthropic models. `silence` bounds the wait for any byte, seconds.

    A base address may end in `/v1` or not. `transport` replaces the network.
    """
    base = base_url.rstrip("/").removesuffix("/v1") if base_url else None

    # Reading all certificates takes half a second: once, not for each client.
    certificates = lru_cache(httpx2.create_ssl_context)

    def network(sdk: Any) -> Any:
        return sdk.DefaultAsyncHttpxClient(
            timeout=httpx2.Timeout(connect=_CONNECT, read=silence, write=silence, pool=silence),
            limits=httpx2.Limits(max_connections=4000, max_keepalive_connections=400),
            **({"transport": transport} if transport else {"verify": certificates()}),
        )

    def make(sdk: Any, secret: str, base: str | None) -> AsyncAnthropic:
        http = network(sdk)
        client: AsyncAnthropic = sdk.AsyncAnthropic(
            api_key=secret,
            base_url=base or "https://api.anthropic.com",
            max_retries=0,
            timeout=http.timeout,
            http_client=http,
        )
        return client

    def another(client: AsyncAnthropic) -> AsyncAnthropic:
        import anthropic

        return client.with_options(http_client=network(anthropic))

    return Connection(PROVIDER, "anthropic", make, another, key, base)


class AnthropicProvider:
    """One Claude model, or another behind the same protocol."""

    def __init__(
        self, model: str, connection: Connection[AsyncAnthropic], clock: Clock, *, window: int = 0
    ) -> None:
        self.model = model
        self._connection = connection
        self._clock = clock
        self._window = window or window_of(model)

    @property
    def name(self) -> str:
        return f"{PROVIDER}:{self.model}"

    @property
    def window(self) -> int:
        return self._window

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[ProviderItem]]:
        async with self._connection.call() as client:
            wanted, dropped = parameters(self.model, self.name, request)
            events = await self._open(client, request, wanted, dropped)
            items = self._read(events, request, dropped)
            try:
                yield items
            finally:
                with anyio.move_on_after(_CLOSE, shield=True):
                    await items.aclose()
                    await events.close()

    async def _open(
        self, client: AsyncAnthropic, request: Request, wanted: dict[str, Any], dropped: list[str]
    ) -> AsyncStream[object]:
        import anthropic

        try:
            try:
                return await _create(client, wanted)
            except anthropic.BadRequestError as refusal:
                # The signature of thinking holds only for what stood before it: it fails when
                # the tools changed in the middle of a loop, or the account did. The answer is
                # worth more than the thinking.
                bare = without_thinking(wanted) if "thinking" in refusal.message else None
                what = "earlier thinking"
                if bare is None and _FORM.search(refusal.message):
                    # Not every model behind this protocol, nor every schema, is taken.
                    bare, what = without_schema(wanted), "answer_schema"
                if bare is None and _FILES.search(refusal.message):
                    # A model that sees nothing, or a file that it cannot open.
                    plain, what = in_words(request), "files"
                    if plain is not request:
                        bare, _ = parameters(self.model, self.name, plain)
                if bare is None:
                    raise
                dropped.append(what)
                return await _create(client, bare)
        except Exception as error:
            self._fail(error)

    async def _read(
        self,
        stream: AsyncStream[object],
        request: Request,
        dropped: list[str],
    ) -> AsyncGenerator[ProviderItem, None]:
        for what in dropped:
            yield Dropped(what)
        answer = Answer(self.name, shows_thinking=request.thinking)
        events = Events(PROVIDER)
        try:
            async for piece in stream.response.aiter_bytes():
                for name, data in events.feed(piece):
                    if name == b"error":
                        self._raise_event(stream.response, data)
                    event = decode_event(data)
                    if event.type == "error":
                        self._raise_event(stream.response, data)
                    for item in answer.take(event):
                        yield item
        except (GeneratorExit, ProviderError):
            raise
        except Exception as error:
            self._fail(error)
        yield answer.finished(self.model, request)

    def _raise_event(self, response: httpx2.Response, data: bytes) -> NoReturn:
        """Raise what an error event inside the stream means."""
        try:
            body: object = msgspec.json.decode(data)
        except msgspec.DecodeError:
            body = data.decode("utf-8", "replace")
        raise failures.of_answer(PROVIDER, None, body, headers=response.headers, clock=self._clock)

    def _fail(self, error: Exception) -> NoReturn:
        fail(error, self._clock)

    async def warm(self) -> None:
        await self._connection.client()

    async def probe(self) -> None:
        """Ask for the list of models. An endpoint that lacks one has answered, too."""
        client = await self._connection.client()
        try:
            try:
                await client.models.list(limit=1)
            except Exception as error:
                self._fail(error)
        except ProviderRejected as refusal:
            if refusal.http_status not in (404, 405, 501):
                raise

    async def refresh(self) -> bool:
        return await self._connection.refresh()

    async def aclose(self) -> None:
        await self._connection.aclose()


def fail(error: Exception, clock: Clock) -> NoReturn:
    """Raise what a failure of the SDK or of the network means; any other error as it is."""
    import anthropic

    if isinstance(error, anthropic.APIStatusError):
        raise failures.of_answer(
            PROVIDER,
            error.status_code,
            error.body,
            headers=error.response.headers,
            clock=clock,
        ) from None
    if isinstance(error, (anthropic.APITimeoutError, httpx2.TimeoutException)):
        raise failures.silent(PROVIDER) from None
    if isinstance(error, anthropic.APIConnectionError):
        raise failures.unreachable(PROVIDER) from None
    if isinstance(error, httpx2.HTTPError):
        raise failures.broken_off(PROVIDER) from None
    if isinstance(error, (msgspec.DecodeError, anthropic.APIError)):
        raise ProviderMalformed(
            f"{PROVIDER} sent what is no event of its protocol.", provider=PROVIDER
        ) from None
    raise error


async def _create(client: AsyncAnthropic, wanted: dict[str, Any]) -> AsyncStream[object]:
    import anthropic

    stream: AsyncStream[object] = await client.post(
        "/v1/messages",
        content=_encode({**wanted, "stream": True}),
        options={"headers": {"content-type": "application/json"}},
        cast_to=object,
        stream=True,
        stream_cls=anthropic.AsyncStream[object],
    )
    return stream
