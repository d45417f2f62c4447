"""Anthropic's Message Batches through the official SDK.

Of a batch that was created while nobody heard the answer, its list says when it was made and of
how many items; only its results name them. So a batch is known for certain once it has ended.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import anyio

from mira.clock import Clock
from mira.errors import ProviderError
from mira.llm import failures
from mira.llm.anthropic import fail
from mira.llm.anthropic_answer import PROVIDER, counts, metered, stop_of
from mira.llm.anthropic_request import parameters
from mira.llm.base import Finished
from mira.llm.batch import Batch, BatchItem, ItemOutcome, ItemResult
from mira.llm.connection import Connection
from mira.llm.text import estimated_tokens
from mira.messages.content import Block, Text
from mira.messages.turn import Usage

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.types.messages import MessageBatch, MessageBatchIndividualResponse

#: Batches on one page of the list, and how many of them are looked at.
_PAGE, _LOOKED_AT = 100, 500
#: Seconds in which a stream must be closed.
_CLOSE = 2.0


class AnthropicBatches:
    """The batches of one Claude model."""

    def __init__(self, model: str, connection: Connection[AsyncAnthropic], clock: Clock) -> None:
        self.model = model
        self._connection = connection
        self._clock = clock

    @property
    def name(self) -> str:
        return f"{PROVIDER}:{self.model}"

    async def create(self, items: Sequence[BatchItem]) -> Batch:
        """See Batches."""
        requests: Any = [
            {
                "custom_id": item.name,
                "params": parameters(self.model, self.name, item.request)[0],
            }
            for item in items
        ]
        client = await self._connection.client()
        try:
            return _batch(await client.messages.batches.create(requests=requests))
        except Exception as error:
            fail(error, self._clock)

    async def retrieve(self, batch_id: str) -> Batch:
        """See Batches."""
        client = await self._connection.client()
        try:
            return _batch(await client.messages.batches.retrieve(batch_id))
        except Exception as error:
            fail(error, self._clock)

    @asynccontextmanager
    async def results(self, batch_id: str) -> AsyncIterator[AsyncIterator[ItemResult]]:
        """See Batches."""
        async with self._connection.call() as client:
            try:
                stream = await client.messages.batches.results(batch_id)
            except Exception as error:
                fail(error, self._clock)
            items = self._read(stream)
            try:
                yield items
            finally:
                with anyio.move_on_after(_CLOSE, shield=True):
                    await items.aclose()
                    await stream.close()

    async def _read(
        self, stream: AsyncIterator[MessageBatchIndividualResponse]
    ) -> AsyncGenerator[ItemResult, None]:
        try:
            async for item in stream:
                if (result := self._result(item.to_dict())) is not None:
                    yield result
        except (GeneratorExit, ProviderError):
            raise
        except json.JSONDecodeError:
            # Cut in the middle of a line.
            raise failures.broken_off(PROVIDER) from None
        except Exception as error:
            fail(error, self._clock)

    def _result(self, item: dict[str, Any]) -> ItemResult | None:
        """One line of the results; None for one that does not say of what it is the result."""
        name, result = item.get("custom_id"), item.get("result")
        if not isinstance(name, str) or not isinstance(result, dict):
            return None
        match result.get("type"):
            case "succeeded" if isinstance(result.get("message"), dict):
                answer = _finished(self.model, result["message"])
                return ItemResult(name=name, outcome=ItemOutcome.SUCCEEDED, answer=answer)
            case "expired":
                return ItemResult(name=name, outcome=ItemOutcome.EXPIRED, error="expired")
            case "canceled":
                return ItemResult(name=name, outcome=ItemOutcome.CANCELED, error="canceled")
            case _:
                # The words of an error may quote the request: its kind is enough.
                error = failures.of_answer(PROVIDER, 400, result.get("error"))
                return ItemResult(name=name, outcome=ItemOutcome.ERRORED, error=error.detail)

    async def newest(self, since: datetime) -> AsyncGenerator[Batch, None]:
        """See Batches. Looks at the newest five hundred."""
        client = await self._connection.client()
        looked_at = 0
        try:
            async for found in client.messages.batches.list(limit=_PAGE):
                batch = _batch(found)
                looked_at += 1
                if batch.created_at < since or looked_at > _LOOKED_AT:
                    return
                yield batch
        except GeneratorExit:
            raise
        except Exception as error:
            fail(error, self._clock)

    async def cancel(self, batch_id: str) -> None:
        """See Batches."""
        client = await self._connection.client()
        try:
            await client.messages.batches.cancel(batch_id)
        except Exception as error:
            fail(error, self._clock)


def _batch(found: MessageBatch) -> Batch:
    counted = found.request_counts
    return Batch(
        id=found.id,
        created_at=found.created_at,
        expires_at=found.expires_at,
        items=counted.processing
        + counted.succeeded
        + counted.errored
        + counted.canceled
        + counted.expired,
        ended=found.processing_status == "ended",
    )


def _finished(model: str, message: dict[str, Any]) -> Finished:
    content = message.get("content")
    blocks: tuple[Block, ...] = tuple(
        Text(text=block["text"])
        for block in (content if isinstance(content, list) else ())
        if isinstance(block, dict) and block.get("type") == "text" and block.get("text")
    )
    counted = counts(message.get("usage"))
    written = "".join(block.text for block in blocks if isinstance(block, Text))
    if "input_tokens" in counted and "output_tokens" in counted:
        usage = metered(counted)
    else:
        usage = Usage(output_tokens=estimated_tokens(written), calls=1, reported=False)
    return Finished(
        blocks=blocks,
        stop=stop_of(message.get("stop_reason")),
        usage=usage,
        provider=PROVIDER,
        model=model,
    )
