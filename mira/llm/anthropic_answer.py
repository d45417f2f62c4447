"""One streamed answer of the Messages API, put together from its events."""

from __future__ import annotations

import json
from typing import Any, TypeVar

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
from mira.messages.content import Block, RedactedThinking, Text, Thinking, ToolUse
from mira.messages.turn import Usage

PROVIDER = "anthropic"

_STOP = {
    "end_turn": StopReason.END,
    "stop_sequence": StopReason.END,
    "tool_use": StopReason.TOOL_USE,
    "max_tokens": StopReason.MAX_TOKENS,
    "model_context_window_exceeded": StopReason.MAX_TOKENS,
    "refusal": StopReason.REFUSAL,
}


class _Part(msgspec.Struct):
    """A content block, or a piece of one. Which fields are there depends on the type."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    partial_json: str | None = None
    stop_reason: str | None = None


class _Message(msgspec.Struct):
    usage: Any = None


class Event(msgspec.Struct):
    """An event of the stream, of any kind, as far as it is read here."""

    type: str
    index: int | None = None
    message: _Message | None = None
    content_block: _Part | None = None
    delta: _Part | None = None
    usage: Any = None


#: Raises msgspec.DecodeError for what is no event.
decode_event = msgspec.json.Decoder(Event).decode


class Answer:
    """What has come of one answer. Blocks are put together in the order of their index."""

    def __init__(self, source: str, *, shows_thinking: bool) -> None:
        self._source = source
        self._shows_thinking = shows_thinking
        self._blocks: dict[int, dict[str, Any]] = {}
        self._stop: str | None = None
        self._stopped = False
        self._usage: dict[str, int] = {}

    def take(self, event: Event) -> list[ProviderItem]:
        """What one event has to tell. Raises ProviderMalformed if it lacks what it must have."""
        try:
            return self._take(event)
        except (KeyError, TypeError):
            raise ProviderMalformed(
                f"{PROVIDER} sent an event without its parts.", provider=PROVIDER
            ) from None

    def _take(self, event: Event) -> list[ProviderItem]:
        match event.type:
            case "content_block_delta":
                return self._delta(_there(event.index), _there(event.delta))
            case "message_start":
                self._count(_there(event.message).usage)
                return [Metered(self._metered())] if self._usage else []
            case "content_block_start":
                return self._start(_there(event.index), _there(event.content_block))
            case "message_delta":
                self._stop = _there(event.delta).stop_reason or self._stop
                self._count(event.usage)
                return []
            case "ping":
                # Says that the connection lives, not that the model is at work.
                return []
            case "message_stop":
                self._stopped = True
                return []
            case _:
                return [Progress()]

    def _start(self, index: int, block: _Part) -> list[ProviderItem]:
        kind = block.type
        state: dict[str, Any] = {"kind": kind}
        self._blocks[index] = state
        match kind:
            case "text":
                state["text"] = [block.text or ""]
                return [TextDelta(block.text)] if block.text else [Progress()]
            case "thinking":
                state["text"] = [block.thinking or ""]
                state["signature"] = block.signature or ""
                return self._thought(block.thinking)
            case "redacted_thinking":
                state["data"] = _there(block.data)
            case "tool_use":
                call_id, name = _there(block.id), _there(block.name)
                state.update(id=call_id, name=name, input=block.input, json=[])
                return [ToolCalling(call_id, name)]
        return [Progress()]

    def _delta(self, index: int, delta: _Part) -> list[ProviderItem]:
        state = self._blocks.setdefault(index, {"kind": "text", "text": []})
        match delta.type:
            case "text_delta" if state["kind"] == "text":
                text = _there(delta.text)
                state["text"].append(text)
                return [TextDelta(text)] if text else []
            case "thinking_delta" if state["kind"] == "thinking":
                state["text"].append(_there(delta.thinking))
                return self._thought(delta.thinking)
            case "signature_delta" if state["kind"] == "thinking":
                state["signature"] += _there(delta.signature)
            case "input_json_delta" if state["kind"] == "tool_use":
                state["json"].append(_there(delta.partial_json))
        return [Progress()]

    def _thought(self, text: str | None) -> list[ProviderItem]:
        return [ThinkingDelta(text)] if text and self._shows_thinking else [Progress()]

    def _count(self, usage: Any) -> None:
        """Counts are cumulative; a later event may correct or omit any of them."""
        self._usage.update(counts(usage))

    def _metered(self) -> Usage:
        return metered(self._usage)

    def finished(self, model: str, request: Request) -> Finished:
        """The whole answer. Raises ProviderOutage if it was cut, ProviderMalformed if blank."""
        if not self._stopped:
            raise failures.broken_off(PROVIDER)
        stop = stop_of(self._stop)
        blocks = self._whole(stop)
        said = any(
            isinstance(b, ToolUse) or (isinstance(b, Text) and b.text.strip()) for b in blocks
        )
        if not said and stop is not StopReason.REFUSAL:
            raise ProviderMalformed(f"{PROVIDER} sent a blank answer.", provider=PROVIDER)
        written = "".join("".join(s.get("text", s.get("json", ()))) for s in self._blocks.values())
        reported = "input_tokens" in self._usage and "output_tokens" in self._usage
        usage = self._metered() if reported else estimated_usage(request, written)
        return Finished(blocks=blocks, stop=stop, usage=usage, provider=PROVIDER, model=model)

    def _whole(self, stop: StopReason) -> tuple[Block, ...]:
        blocks: list[Block] = []
        for _, state in sorted(self._blocks.items()):
            match state["kind"]:
                case "text":
                    if text := "".join(state["text"]):
                        blocks.append(Text(text=text))
                case "thinking":
                    blocks.append(
                        Thinking(
                            text="".join(state["text"]),
                            signature=state["signature"],
                            source=self._source,
                        )
                    )
                case "redacted_thinking":
                    blocks.append(RedactedThinking(data=state["data"], source=self._source))
                case "tool_use":
                    raw = "".join(state["json"])
                    if not raw and state["input"]:
                        raw = json.dumps(state["input"], ensure_ascii=False)
                    try:
                        given = arguments(raw, PROVIDER)
                    except ProviderMalformed:
                        if stop is StopReason.MAX_TOKENS:
                            continue  # cut off by the limit: the call was never finished
                        raise
                    blocks.append(ToolUse(call_id=state["id"], name=state["name"], arguments=given))
        return tuple(blocks)


def stop_of(reason: str | None) -> StopReason:
    """What a stop reason of theirs means."""
    return _STOP.get(reason or "", StopReason.OTHER)


def counts(usage: Any) -> dict[str, int]:
    """The token counts in a usage object, as far as there are any."""
    names = (
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
    )
    if not isinstance(usage, dict):
        return {}
    return {name: usage[name] for name in names if isinstance(usage.get(name), int)}


def metered(counted: dict[str, int]) -> Usage:
    """The usage of one call, from its counts."""
    return Usage(
        input_tokens=counted.get("input_tokens", 0),
        output_tokens=counted.get("output_tokens", 0),
        cache_read_tokens=counted.get("cache_read_input_tokens", 0),
        cache_write_tokens=counted.get("cache_creation_input_tokens", 0),
        calls=1,
    )


T = TypeVar("T")


def _there(part: T | None) -> T:
    """A part that the protocol says is there."""
    if part is None:
        raise KeyError
    return part
