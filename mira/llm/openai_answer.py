"""One streamed chat completion, put together from its chunks, however its server cuts them."""

from __future__ import annotations

from typing import Any

import msgspec

from mira.errors import ProviderMalformed
from mira.llm import failures
from mira.llm.base import (
    Finished,
    Metered,
    Progress,
    ProviderItem,
    Request,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolCalling,
)
from mira.llm.text import arguments, estimated_usage
from mira.messages.content import Block, Text, Thinking, ToolUse
from mira.messages.turn import Usage

_STOP = {
    "stop": StopReason.END,
    "length": StopReason.MAX_TOKENS,
    "tool_calls": StopReason.TOOL_USE,
    "function_call": StopReason.TOOL_USE,
    "content_filter": StopReason.REFUSAL,
}


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: Any = None


class _CallPart(msgspec.Struct):
    index: Any = None
    id: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct):
    content: Any = None
    refusal: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: list[_CallPart] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


class Chunk(msgspec.Struct):
    """A chunk of the stream as far as it is read here; imitators leave out what they like."""

    id: Any = None
    choices: list[_Choice] | None = None
    usage: Any = None
    error: Any = None


#: Raises msgspec.DecodeError for what is no chunk.
decode_chunk = msgspec.json.Decoder(Chunk).decode


class _Call:
    def __init__(self, call_id: str, name: str) -> None:
        self.id = call_id
        self.name = name
        self.arguments: list[str] = []


class Answer:
    """What has come of one answer of `provider:model`."""

    def __init__(self, provider: str, model: str, *, shows_thinking: bool) -> None:
        self._provider = provider
        self._model = model
        self._shows_thinking = shows_thinking
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._reason: str | None = None
        self._refused = False
        self._usage: Usage | None = None
        self._id = "call"

    def take(self, chunk: Chunk) -> list[ProviderItem]:
        """What one chunk has to tell."""
        items: list[ProviderItem] = []
        if isinstance(chunk.id, str) and chunk.id:
            self._id = chunk.id
        if usage := _usage(chunk.usage):
            self._usage = usage
            items.append(Metered(usage))
        if not chunk.choices:
            return items
        choice = chunk.choices[0]
        if choice.finish_reason:
            self._reason = choice.finish_reason
        delta = choice.delta
        if delta is None:
            return items
        for thought in (delta.reasoning_content, delta.reasoning):
            if isinstance(thought, str) and thought:
                self._thinking.append(thought)
                items.append(ThinkingDelta(thought) if self._shows_thinking else Progress())
                break
        for text in (delta.content, delta.refusal):
            if isinstance(text, str) and text:
                self._text.append(text)
                self._refused |= text is delta.refusal
                items.append(TextDelta(text))
        items.extend(self._call(part) for part in delta.tool_calls or ())
        return items

    def _call(self, part: _CallPart) -> ProviderItem:
        """Take a piece of a call. Some servers give no index, or the same one to every call."""
        function = part.function
        name = (function.name if function else None) or ""
        given = (function.arguments if function else None) or ""
        index = part.index if isinstance(part.index, int) else None
        call = self._by_index.get(index) if index is not None else None
        if index is None and self._calls and not (part.id and part.id != self._calls[-1].id):
            call = self._calls[-1] if part.id or not name else None
        if call is not None and part.id and part.id != call.id and name:
            call = None
        fresh = call is None
        if call is None:
            call = _Call(part.id or f"{self._id}-{len(self._calls)}", name)
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        call.name = call.name or name
        call.arguments.append(given if isinstance(given, str) else "")
        return ToolCalling(call.id, call.name) if fresh else Progress()

    def finished(self, request: Request) -> Finished:
        """The whole answer. Raises ProviderOutage if it was cut, ProviderMalformed if blank."""
        if self._reason is None or self._reason == "error":
            raise failures.broken_off(self._provider)
        stop = _STOP.get(self._reason, StopReason.OTHER)
        if self._refused:
            stop = StopReason.REFUSAL
        blocks = self._whole(stop)
        text = "".join(self._text)
        uses = any(isinstance(b, ToolUse) for b in blocks)
        if uses and stop is not StopReason.MAX_TOKENS:
            stop = StopReason.TOOL_USE  # whatever the server calls it
        if not uses and not text.strip() and stop is not StopReason.REFUSAL:
            raise ProviderMalformed(
                f"{self._provider} sent a blank answer.", provider=self._provider
            )
        pieces = [*self._thinking, text, *(p for call in self._calls for p in call.arguments)]
        return Finished(
            blocks=blocks,
            stop=stop,
            usage=self._usage or estimated_usage(request, "".join(pieces)),
            provider=self._provider,
            model=self._model,
        )

    def _whole(self, stop: StopReason) -> tuple[Block, ...]:
        blocks: list[Block] = []
        if self._thinking:
            source = f"{self._provider}:{self._model}"
            blocks.append(Thinking(text="".join(self._thinking), source=source))
        if text := "".join(self._text):
            blocks.append(Text(text=text))
        for call in self._calls:
            try:
                given = arguments("".join(call.arguments), self._provider)
            except ProviderMalformed:
                if stop is StopReason.MAX_TOKENS:
                    continue  # cut off by the limit: the call was never finished
                raise
            blocks.append(ToolUse(call_id=call.id, name=call.name, arguments=given))
        return tuple(blocks)


def _usage(reported: Any) -> Usage | None:
    """The counts of a chunk; None where there are none, or only zeroes standing in for them."""
    if not isinstance(reported, dict):
        return None
    prompt, output = reported.get("prompt_tokens"), reported.get("completion_tokens")
    if not isinstance(prompt, int) or not isinstance(output, int) or not (prompt or output):
        return None
    details = reported.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    read = min(cached, prompt) if isinstance(cached, int) else 0
    return Usage(input_tokens=prompt - read, output_tokens=output, cache_read_tokens=read, calls=1)
