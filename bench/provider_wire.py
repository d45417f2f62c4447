"""The two protocols of the provider double: what goes over the wire, in order and in time.

`plan` turns a behaviour and a request into steps: a delay in seconds, then bytes or one of the
two ends ABORT and HANG. Shapes follow the providers' published references.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, Literal

import msgspec

from bench.provider_script import Behaviour, Call, Failure

Protocol = Literal["anthropic", "openai"]

#: Cut the connection without a word.
ABORT: Final = b"\x00abort"
#: Send nothing more, and leave the connection open.
HANG: Final = b"\x00hang"
#: Repeat the step before this one until the client leaves.
REPEAT: Final = b"\x00repeat"

#: Seconds to wait, what to write then, and whether it is a piece of the answer.
Step = tuple[float, bytes, bool]

_json = msgspec.json.encode
_PIECE = re.compile(r"\S+\s*|\s+")


class Asked(msgspec.Struct):
    """What the double needs to know of a request."""

    protocol: Protocol
    model: str
    stream: bool
    last_user_message: str
    echo: str
    after_tools: bool
    wants_usage: bool
    input_tokens: int = 0
    cache_read: int = 0
    cache_write: int = 0
    serial: int = 0


class Answer(msgspec.Struct):
    """What the behaviour amounts to for one request."""

    text: str
    thinking: str
    calls: tuple[Call, ...]
    tokens: int
    stop: str


@lru_cache(maxsize=4096)
def pieces(text: str) -> tuple[str, ...]:
    """`text` cut after the white space behind each word; joined they are `text` again."""
    return tuple(_PIECE.findall(text))


@lru_cache(maxsize=256)
def made_up(tokens: int) -> str:
    """A reply of so many words."""
    return " ".join(f"word{n}" for n in range(tokens))


def answer(behaviour: Behaviour, asked: Asked) -> Answer:
    if behaviour.echo:
        text = asked.echo
    elif behaviour.text is not None:
        text = behaviour.text
    else:
        text = made_up(behaviour.tokens)
    again = behaviour.tools_again or not asked.after_tools
    calls = behaviour.tools if again else ()
    tokens = len(pieces(text)) + len(pieces(behaviour.thinking))
    tokens += sum(len(call.text()) // 4 + 1 for call in calls)
    names = (
        {True: "tool_use", False: "end_turn"}
        if asked.protocol == "anthropic"
        else {True: "tool_calls", False: "stop"}
    )
    stop = names[bool(calls)] if behaviour.stop is None else behaviour.stop
    return Answer(text, behaviour.thinking, calls, tokens, stop)


def plan(behaviour: Behaviour, asked: Asked) -> Iterator[Step]:
    """The steps of a streamed answer, with the cut where the behaviour wants one."""
    said = answer(behaviour, asked)
    if asked.protocol == "anthropic":
        events = _anthropic(behaviour, asked, said)
        ping, broken = _PING, _anthropic_broken
    else:
        events = _openai(behaviour, asked, said)
        ping, broken = b": ping\n\n", _openai_broken
    cut = behaviour.cut
    count = 0
    started = False
    for payload, is_piece in events:
        if is_piece:
            if cut is not None and count >= cut.after:
                break
            delay = (behaviour.token_ms if started else behaviour.first_token_ms) / 1000
            if not started:
                yield from _waiting(delay, behaviour.ping_ms / 1000, ping)
                delay = delay % (behaviour.ping_ms / 1000) if behaviour.ping_ms else delay
            started = True
            count += 1
            yield delay, payload, True
        elif cut is not None and count >= cut.after and started:
            break
        else:
            yield 0.0, payload, False
    if cut is None:
        return
    match cut.how:
        case "error":
            yield 0.0, broken(cut.type), False
        case "disconnect":
            yield 0.01, ABORT, False
        case "silence":
            yield 0.0, HANG, False
        case "pings":
            yield 0.1, ping, False
            yield 0.1, REPEAT, False
        case "end":
            return


def _waiting(delay: float, every: float, ping: bytes) -> Iterator[Step]:
    if every > 0:
        for _ in range(int(delay / every)):
            yield every, ping, False


# Anthropic.

_PING = b'event: ping\ndata: {"type": "ping"}\n\n'


def _event(kind: str, **fields: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), _json({"type": kind, **fields}))


@lru_cache(maxsize=4096)
def _text_event(index: int, piece: str) -> bytes:
    return _event("content_block_delta", index=index, delta={"type": "text_delta", "text": piece})


def _anthropic(b: Behaviour, asked: Asked, said: Answer) -> Iterator[tuple[bytes, bool]]:
    usage = _anthropic_usage(asked, 1) if b.usage else None
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
    yield _event("message_start", message=message) + _PING, False
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
        end["usage"] = _anthropic_usage(asked, said.tokens)
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
            [{"type": "input_json_delta", "partial_json": part} for part in _fragments(call)],
        )


def _anthropic_usage(asked: Asked, output: int) -> dict[str, Any]:
    return {
        "input_tokens": asked.input_tokens,
        "cache_creation_input_tokens": asked.cache_write,
        "cache_read_input_tokens": asked.cache_read,
        "output_tokens": output,
    }


def _anthropic_broken(kind: str) -> bytes:
    return _event("error", error={"type": kind, "message": "The double was told to fail."})


# OpenAI.


def _openai(b: Behaviour, asked: Asked, said: Answer) -> Iterator[tuple[bytes, bool]]:
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
        first, *rest = _fragments(call) or [""]
        whole = call.mode in ("whole", "start")
        function = {"name": call.name, "arguments": first if whole else ""}
        yield chunk({"tool_calls": [{**named, "function": function}]}), True
        for part in [] if whole else [first, *rest]:
            if part:
                body = {"index": number, "function": {"arguments": part}}
                yield chunk({"tool_calls": [body]}), True
    end = chunk({}, said.stop)
    if b.usage and asked.wants_usage:
        end += b"data: %s\n\n" % _json({**head, "choices": [], "usage": _openai_usage(asked, said)})
    yield end + b"data: [DONE]\n\n", False


def _openai_usage(asked: Asked, said: Answer) -> dict[str, Any]:
    prompt = asked.input_tokens + asked.cache_read + asked.cache_write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": said.tokens,
        "total_tokens": prompt + said.tokens,
        "prompt_tokens_details": {"cached_tokens": asked.cache_read},
    }


def _openai_broken(kind: str) -> bytes:
    error = {"message": "The double was told to fail.", "type": kind, "param": None, "code": None}
    return b"data: %s\n\n" % _json({"error": error})


def _fragments(call: Call) -> list[str]:
    if call.mode in ("empty",) or (call.mode == "start"):
        return [call.text()] if call.mode == "start" and isinstance(call.arguments, str) else []
    text = call.text()
    if call.mode == "whole":
        return [text]
    return ["", *(text[i : i + 3] for i in range(0, len(text), 3))]


# Answers that are not streamed.


def whole(behaviour: Behaviour, asked: Asked) -> bytes:
    """The answer as one JSON document."""
    said = answer(behaviour, asked)
    if asked.protocol == "anthropic":
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
                "usage": _anthropic_usage(asked, said.tokens),
            }
        )
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
            "usage": _openai_usage(asked, said),
        }
    )


def failed(failure: Failure, protocol: Protocol) -> bytes:
    """The body of an error answer."""
    if protocol == "anthropic":
        error = {"type": failure.type, "message": failure.message}
        return _json({"type": "error", "error": error, "request_id": "req_double"})
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
