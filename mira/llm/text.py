"""Small repairs that every adapter needs: text that JSON can carry, arguments that are objects."""

from __future__ import annotations

import json
import re
from typing import Any

from msgspec import structs

from mira.errors import ProviderMalformed
from mira.llm.base import Request
from mira.messages.content import (
    Document,
    Image,
    RedactedThinking,
    Said,
    Shown,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from mira.messages.turn import Usage

_SURROGATE = re.compile("[\ud800-\udfff]")

#: Levels to which a tool's arguments may be nested.
DEEPEST = 64
#: Characters that count as one token where nobody has counted.
CHARACTERS_PER_TOKEN = 4


def sendable(text: str) -> str:
    """`text` with lone surrogates replaced: they cannot be written as UTF-8."""
    return text if text.isascii() else _SURROGATE.sub("�", text)


def sendable_json(value: Any) -> Any:
    """The same for every string in a JSON value."""
    if isinstance(value, str):
        return sendable(value)
    if isinstance(value, list):
        return [sendable_json(item) for item in value]
    if isinstance(value, dict):
        return {sendable(str(key)): sendable_json(item) for key, item in value.items()}
    return value


def arguments(raw: str, provider: str) -> str:
    """JSON text of the object that a model gave as a tool's arguments.

    Nothing, `null` and blank stand for no arguments. An object that was encoded twice is
    unpacked. Raises ProviderMalformed for anything else that is no JSON object, or is nested so
    deep that not every part of the house could read it again.
    """
    if not raw.strip():
        return "{}"
    text = raw
    for _ in range(2):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            break
        if isinstance(value, dict):
            if _deeper(value, DEEPEST):
                break
            return text
        if value is None:
            return "{}"
        if not isinstance(value, str):
            break
        text = value
    raise ProviderMalformed(
        "The arguments of a tool call are not a JSON object.", provider=provider
    )


def _deeper(value: Any, levels: int) -> bool:
    layer = [value]
    for _ in range(levels):
        layer = [
            inner
            for outer in layer
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not layer:
            return False
    return True


def in_words(request: Request) -> Request:
    """The request with words in the place of files: of a document those that stand in it, of an
    image that it was not seen. The very same where there is no file."""
    if not any(isinstance(b, Image | Document) for said in request.messages for b in said.blocks):
        return request
    return structs.replace(
        request,
        messages=tuple(
            Said(role=said.role, blocks=tuple(map(_in_words, said.blocks)))
            for said in request.messages
        ),
    )


def has_images(request: Request) -> bool:
    return any(isinstance(b, Image) for said in request.messages for b in said.blocks)


def _in_words(block: Shown) -> Shown:
    match block:
        case Image(name=name):
            return Text(text=f"[{name}: an image that you cannot see. Say so if it matters.]")
        case Document(words=words):
            return Text(text=words)
        case _:
            return block


def estimated_tokens(text: str) -> int:
    """About how many tokens `text` is; used only where the provider has not said."""
    return (len(text) + CHARACTERS_PER_TOKEN - 1) // CHARACTERS_PER_TOKEN


def estimated_input(request: Request) -> int:
    """About how many tokens a request is."""
    length = sum(len(block.text) for block in request.system)
    length += sum(len(t.name) + len(t.description) + len(t.parameters) for t in request.tools)
    for message in request.messages:
        for block in message.blocks:
            match block:
                case Text(text=text) | Thinking(text=text) | ToolResult(text=text):
                    length += len(text)
                case ToolUse():
                    length += len(block.name) + len(block.arguments)
                case RedactedThinking():
                    length += len(block.data)
                case Image():
                    length += block.tokens * CHARACTERS_PER_TOKEN
                case Document():
                    length += max(len(block.words), block.page_tokens * CHARACTERS_PER_TOKEN)
    return (length + CHARACTERS_PER_TOKEN - 1) // CHARACTERS_PER_TOKEN


def estimated_usage(request: Request, output: str) -> Usage:
    """Usage of a call whose provider reported none."""
    return Usage(
        input_tokens=estimated_input(request),
        output_tokens=estimated_tokens(output),
        calls=1,
        reported=False,
    )
