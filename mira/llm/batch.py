"""The port to batches: many requests handed over at once, answered within a day, at half the price.

A provider that has batches answers each item under the name it was given; the order of results
means nothing. What fails raises a ProviderError as a call would: an outage may be met again later,
a refusal with `http_status` 404 means that the provider does not know the batch any more.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from enum import StrEnum
from typing import Protocol

import msgspec

from mira.llm.base import Finished, Request


class BatchItem(msgspec.Struct, frozen=True, kw_only=True):
    """One request of a batch. `name` is unique in it: 1 to 64 of letters, digits, `_` and `-`."""

    name: str
    request: Request


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch as its provider sees it."""

    id: str
    created_at: datetime
    #: After it nothing more is answered.
    expires_at: datetime
    items: int
    #: All items have a result, which can be read.
    ended: bool


class ItemOutcome(StrEnum):
    SUCCEEDED = "succeeded"
    ERRORED = "errored"
    EXPIRED = "expired"
    CANCELED = "canceled"


class ItemResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one item: an answer if it succeeded, else the kind of its failure."""

    name: str
    outcome: ItemOutcome
    answer: Finished | None = None
    error: str = ""


class Batches(Protocol):
    """The batches of one model. `name` is `provider:model`."""

    @property
    def name(self) -> str: ...

    async def create(self, items: Sequence[BatchItem]) -> Batch:
        """Hand the items over. When an outage is raised it is not known whether it was done:
        look for it with `newest`."""
        ...

    async def retrieve(self, batch_id: str) -> Batch: ...

    def results(self, batch_id: str) -> AbstractAsyncContextManager[AsyncIterator[ItemResult]]:
        """The results of a batch that has ended, as they stream in.

        Raises ProviderOutage if the stream breaks off; what came before it holds.
        """
        ...

    def newest(self, since: datetime) -> AsyncIterator[Batch]:
        """The account's batches created at `since` or later, newest first; of any model."""
        ...

    async def cancel(self, batch_id: str) -> None:
        """Ask for its end. Items that are done keep their results."""
        ...
