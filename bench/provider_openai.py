"""OpenAI's chat completions as the provider double speaks them: shapes of chunks and answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from bench.provider_answer import Answer, Asked, fragments, pieces
from bench.provider_script import Behaviour, Failure

_json = msgspec.json.encode

PING = b": ping\n\n"


def events(b: Behaviour, asked: Asked, said: Answer) -> Iterator[tuple[bytes, bool]]:
    """The chunks of a stream, and of each whether it is a piece of the answer."""
    head = {
        "id": f"chatcmpl-double{asked.serial:08d}",
        "object": "chat.completion.chunk",
        "created": 1_780_000_000,
        "model": asked.model,
        "system_fingerprint": "fp_double",
    }
    prefix = _json(head)[:-1]

    def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return b"data: %s%s\n\n" % (prefix, b',"choices":[' + _json(choice) + b'],"usage":null}')

    yield chunk({"role": "assistant", "content": "", "refusal": None}), False
    for piece in pieces(said.thinking):
        yield chunk({b.reasoning_field: piece}), True
    if b.empty_blocks:
        yield chunk({"content": ""}), False
    opening, closing = (
        prefix + b',"choices":[{"index":0,"delta":{"content":',
        (b'},"logprobs":null,"finish_reason":null}],"usage":null}\n\n'),
    )
    for piece in pieces(said.text):
        yield b"data: " + opening + _json(piece) + closing, True
    if b.empty_blocks:
        yield chunk({"content": ""}) + chunk({}), False
    for number, call in enumerate(said.calls):
        named = {
            "index": number,
            "id": call.id or f"call_double{asked.serial:08d}{number:02d}",
            "type": "function",
        }
        first, *rest = fragments(call) or [""]
        whole = call.mode in ("whole", "start")
        function = {"name": call.name, "arguments": first if whole else ""}
        yield chunk({"tool_calls": [{**named, "function": function}]}), True
        for part in [] if whole else [first, *rest]:
            if part:
                body = {"index": number, "function": {"arguments": part}}
                yield chunk({"tool_calls": [body]}), True
    end = chunk({}, said.stop)
    if b.usage and asked.wants_usage:
        end += b"data: %s\n\n" % _json({**head, "choices": [], "usage": _usage(asked, said)})
    yield end + b"data: [DONE]\n\n", False


def _usage(asked: Asked, said: Answer) -> dict[str, Any]:
    prompt = asked.input_tokens + asked.cache_read + asked.cache_write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": said.tokens,
        "total_tokens": prompt + said.tokens,
        "prompt_tokens_details": {"cached_tokens": asked.cache_read},
    }


def broken(kind: str) -> bytes:
    """An error in the middle of a stream."""
    error = {"message": "The double was told to fail.", "type": kind, "param": None, "code": None}
    return b"data: %s\n\n" % _json({"error": error})


def whole(behaviour: Behaviour, asked: Asked, said: Answer) -> bytes:
    """An answer that is not streamed."""
    message: dict[str, Any] = {"role": "assistant", "content": said.text, "refusal": None}
    if said.thinking:
        message[behaviour.reasoning_field] = said.thinking
    if said.calls:
        message["tool_calls"] = [
            {
                "id": call.id or f"call_double{asked.serial:08d}{number:02d}",
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": "" if call.mode == "empty" else call.text(),
                },
            }
            for number, call in enumerate(said.calls)
        ]
    return _json(
        {
            "id": f"chatcmpl-double{asked.serial:08d}",
            "object": "chat.completion",
            "created": 1_780_000_000,
            "model": asked.model,
            "choices": [
                {"index": 0, "message": message, "logprobs": None, "finish_reason": said.stop}
            ],
            "usage": _usage(asked, said),
        }
    )


def failed(failure: Failure) -> bytes:
    """The body of an error answer."""
    return _json(
        {
            "error": {
                "message": failure.message,
                "type": failure.type,
                "param": failure.param,
                "code": failure.code,
            }
        }
    )
