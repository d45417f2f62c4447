"""What a request asks of the provider double, and what a behaviour makes of it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

import msgspec

from bench.provider_script import Behaviour, Call

Protocol = Literal["anthropic", "openai"]

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
    elif behaviour.texts:
        text = behaviour.texts[asked.serial % len(behaviour.texts)]
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


def fragments(call: Call) -> list[str]:
    """The arguments of a call in the pieces in which they are streamed."""
    if call.mode in ("empty", "start"):
        return []
    text = call.text()
    if call.mode == "whole":
        return [text]
    return ["", *(text[i : i + 3] for i in range(0, len(text), 3))]
