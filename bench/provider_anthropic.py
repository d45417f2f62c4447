"""Anthropic's Messages API as the provider double speaks it: shapes of events and answers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from bench.provider_answer import Answer, Asked, fragments, pieces
from bench.provider_script import Behaviour, Failure

_json = msgspec.json.encode

PING = b'event: ping\ndata: {"type": "ping"}\n\n'


def _event(kind: str, **fields: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), _json({"type": kind, **fields}))


@lru_cache(maxsize=4096)
def _text_event(index: int, piece: str) -> bytes:
    return _event("content_block_delta", index=index, delta={"type": "text_delta", "text": piece})


def events(b: Behaviour, asked: Asked, said: Answer) -> Iterator[tuple[bytes, bool]]:
    """The events of a stream, and of each whether it is a piece of the answer."""
    usage = _usage(asked, 1) if b.usage else None
    message: dict[str, Any] = {
        "id": f"msg_double{asked.serial:08d}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }
    if usage is not None:
        message["usage"] = usage
    yield _event("message_start", message=message) + PING, False
    for index, (start, deltas) in enumerate(_blocks(b, asked, said)):
        yield _event("content_block_start", index=index, content_block=start), False
        for delta in deltas:
            if isinstance(delta, str):
                yield _text_event(index, delta), True
            else:
                yield (
                    _event("content_block_delta", index=index, delta=delta),
                    delta["type"] != "signature_delta",
                )
        yield _event("content_block_stop", index=index), False
    end: dict[str, Any] = {"delta": {"stop_reason": said.stop, "stop_sequence": None}}
    if b.usage:
        end["usage"] = _usage(asked, said.tokens)
    yield _event("message_delta", **end) + _event("message_stop"), False


def _blocks(
    b: Behaviour, asked: Asked, said: Answer
) -> Iterator[tuple[dict[str, Any], list[str | dict[str, Any]]]]:
    if b.redacted:
        yield {"type": "redacted_thinking", "data": b.redacted}, []
    if said.thinking:
        deltas: list[str | dict[str, Any]] = [
            {"type": "thinking_delta", "thinking": piece} for piece in pieces(said.thinking)
        ]
        deltas.append({"type": "signature_delta", "signature": b.signature})
        yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if b.empty_blocks:
        yield {"type": "text", "text": ""}, []
    if said.text:
        yield {"type": "text", "text": ""}, list(pieces(said.text))
    if b.empty_blocks:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": ""}]
    for number, call in enumerate(said.calls):
        started = {
            "type": "tool_use",
            "id": call.id or f"toolu_double{asked.serial:08d}{number:02d}",
            "name": call.name,
            "input": call.arguments if call.mode == "start" else {},
        }
        yield (
            started,
            [{"type": "input_json_delta", "partial_json": part} for part in fragments(call)],
        )


def _usage(asked: Asked, output: int) -> dict[str, Any]:
    return {
        "input_tokens": asked.input_tokens,
        "cache_creation_input_tokens": asked.cache_write,
        "cache_read_input_tokens": asked.cache_read,
        "output_tokens": output,
    }


def broken(kind: str) -> bytes:
    """An error in the middle of a stream."""
    return _event("error", error={"type": kind, "message": "The double was told to fail."})


def whole(behaviour: Behaviour, asked: Asked, said: Answer) -> bytes:
    """An answer that is not streamed."""
    content: list[dict[str, Any]] = []
    for start, deltas in _blocks(behaviour, asked, said):
        if start["type"] == "text":
            start = {**start, "text": said.text if deltas else ""}
        elif start["type"] == "thinking":
            start = {**start, "thinking": said.thinking, "signature": behaviour.signature}
        elif start["type"] == "tool_use":
            joined = "".join(d["partial_json"] for d in deltas if isinstance(d, dict))
            start = {
                **start,
                "input": msgspec.json.decode(joined) if joined else start["input"],
            }
        content.append(start)
    return _json(
        {
            "id": f"msg_double{asked.serial:08d}",
            "type": "message",
            "role": "assistant",
            "model": asked.model,
            "content": content,
            "stop_reason": said.stop,
            "stop_sequence": None,
            "usage": _usage(asked, said.tokens),
        }
    )


def failed(failure: Failure) -> bytes:
    """The body of an error answer."""
    error = {"type": failure.type, "message": failure.message}
    return _json({"type": "error", "error": error, "request_id": "req_double"})
