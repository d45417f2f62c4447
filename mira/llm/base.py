"""The port to model providers: what is asked, what streams back.

One format, after Anthropic's conventions. An adapter translates it at its edge, drops what its
provider lacks and says so in `Dropped`. Every stream ends with exactly one `Finished`, or raises
a ProviderError (see mira.errors); a stream that ends early without one is a ProviderOutage.

In `Usage`, `input_tokens` are those read at full price: tokens read from a cache or written to
one are counted in their own fields and not again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import Protocol

import msgspec

from mira.messages.content import Block, Said
from mira.messages.tool import ToolDescription
from mira.messages.turn import Usage


class Effort(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class SystemBlock(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the system prompt; `cache` puts a cache mark at its end."""

    text: str
    cache: bool = False


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a model.

    `messages` begin with the user. Neighbours of one role (tool results, under TOOL, are the user's
    side) are joined by the adapter where its provider wants user and assistant in turn.
    `cache_marks` are numbers of leading messages, rising: a cache mark is set after each.
    `answer_schema` is the JSON schema of the answer, as JSON text, for an object. Who sets it still
    reads the answer with care, since a provider that lacks this is asked without it.
    """

    system: tuple[SystemBlock, ...]
    messages: tuple[Said, ...]
    tools: tuple[ToolDescription, ...] = ()
    max_output_tokens: int = 8192
    effort: Effort | None = None
    thinking: bool = False
    cache_marks: tuple[int, ...] = ()
    answer_schema: str | None = None


class TextDelta(msgspec.Struct, frozen=True):
    text: str


class ThinkingDelta(msgspec.Struct, frozen=True):
    text: str


class ToolCalling(msgspec.Struct, frozen=True):
    """A tool call has begun to stream; its arguments come whole in Finished."""

    call_id: str
    name: str


class Switched(msgspec.Struct, frozen=True):
    """The routing gave up on one model and goes on with another; all deltas before are void."""

    source: str
    target: str
    reason: str


class Retrying(msgspec.Struct, frozen=True):
    """The call failed and is made again after `delay` seconds; all deltas before are void."""

    source: str
    reason: str
    delay: float


class Dropped(msgspec.Struct, frozen=True):
    """The provider lacks something of the request: it was left out. `what` names it."""

    what: str


class StopReason(StrEnum):
    END = "end"
    TOOL_USE = "tool_use"
    MAX_TOKENS = "max_tokens"
    REFUSAL = "refusal"
    OTHER = "other"


class CallRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One physical call of a provider, failed ones included, for the books."""

    provider: str
    model: str
    usage: Usage
    #: Milliseconds from the call to the first event and to the end; None if there was none.
    first_event_ms: float | None
    total_ms: float
    #: None if it succeeded, else the error's code.
    error: str | None = None


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a stream: the whole answer, block for block, fit to be sent back as it is."""

    blocks: tuple[Block, ...]
    stop: StopReason
    usage: Usage
    provider: str
    model: str
    calls: tuple[CallRecord, ...] = ()


StreamItem = TextDelta | ThinkingDelta | ToolCalling | Switched | Retrying | Dropped | Finished


class Progress(msgspec.Struct, frozen=True):
    """The model is at work on something that is not shown yet: hidden reasoning, arguments."""


class Metered(msgspec.Struct, frozen=True):
    """What the provider has counted so far: booked if the call does not come to its end."""

    usage: Usage


#: What one call of a provider yields. The routing consumes the last two and passes on the rest.
ProviderItem = StreamItem | Progress | Metered


class Provider(Protocol):
    """A model that can be talked to. `name` is `provider:model`."""

    @property
    def name(self) -> str: ...

    @property
    def window(self) -> int:
        """Tokens of input and output together that the model can hold."""
        ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[ProviderItem]]:
        """Make one call. Leaving the context early closes the connection at once, in bounded time,
        even while the task is being cancelled."""
        ...

    async def warm(self) -> None:
        """Load what the first call would wait for. Raises ProviderError."""
        ...

    async def probe(self) -> None:
        """See whether the provider answers, as cheaply as it can. Raises ProviderError."""
        ...

    async def refresh(self) -> bool:
        """Read the key again, where there is one. Return whether it is another one now."""
        ...

    async def aclose(self) -> None:
        """Release connections. Idempotent."""
        ...
