"""Our request in the words of OpenAI's chat completions, as their many imitators take it."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

from mira.llm.base import Request
from mira.llm.text import sendable
from mira.messages.content import (
    Document,
    Image,
    Role,
    Said,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    plain_text,
)

#: Between the text blocks of one message: one string is what every endpoint takes.
_BETWEEN = "\n\n"


def parameters(model: str, source: str, request: Request) -> tuple[dict[str, Any], list[str]]:
    """Keyword arguments for `chat.completions.create`, and what had to be left out."""
    wanted: dict[str, Any] = {
        "model": model,
        "messages": messages(request, source),
        "max_completion_tokens": request.max_output_tokens,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        wanted["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": sendable(tool.description),
                    "parameters": json.loads(tool.parameters),
                },
            }
            for tool in request.tools
        ]
    if request.answer_schema is not None:
        wanted["response_format"] = {
            "type": "json_schema",
            "json_schema": {
                "name": "answer",
                "strict": True,
                "schema": json.loads(request.answer_schema),
            },
        }
    if request.effort is not None:
        wanted["reasoning_effort"] = request.effort.value
    return wanted, []


def messages(request: Request, source: str) -> list[dict[str, Any]]:
    """The system prompt and the messages; neighbours of the same role become one.

    Reasoning goes back only within the loop of tools under way and to the model that it came
    from: some endpoints refuse a tool result without it, and none wants it later.
    """
    wire: list[dict[str, Any]] = []
    system = _BETWEEN.join(block.text for block in request.system if block.text.strip())
    if system:
        wire.append({"role": "system", "content": sendable(system)})
    # Documents go as their words: not every model behind this protocol reads files.
    loop = max((i for i, m in enumerate(request.messages) if m.role is Role.USER), default=-1)
    for index, said in enumerate(request.messages):
        if said.role is Role.ASSISTANT:
            if message := _assistant(said, source if index > loop else ""):
                wire.append(message)
            continue
        wire.extend(_result(block) for block in said.blocks if isinstance(block, ToolResult))
        content = _content(said)
        if not content:
            continue
        if wire and wire[-1]["role"] == "user":
            wire[-1]["content"] = _joined(wire[-1]["content"], content)
        else:
            wire.append({"role": "user", "content": content})
    return wire


def _content(said: Said) -> str | list[dict[str, Any]]:
    """One string, as every endpoint takes it, or parts where there are images."""
    texts = [
        sendable(b.text if isinstance(b, Text) else b.words)
        for b in said.blocks
        if (isinstance(b, Text) and b.text.strip()) or isinstance(b, Document)
    ]
    images = [
        {"type": "image_url", "image_url": {"url": f"data:{b.media_type};base64,{_data(b)}"}}
        for b in said.blocks
        if isinstance(b, Image)
    ]
    text = _BETWEEN.join(texts)
    return [*_parts(text), *images] if images else text


def _joined(
    first: str | list[dict[str, Any]], second: str | list[dict[str, Any]]
) -> str | list[dict[str, Any]]:
    if isinstance(first, str) and isinstance(second, str):
        return first + _BETWEEN + second
    return [*_parts(first), *_parts(second)]


def _parts(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content


def _data(image: Image) -> str:
    return b64encode(image.content).decode()


def _assistant(said: Said, source: str) -> dict[str, Any] | None:
    calls = [
        {
            "id": use.call_id,
            "type": "function",
            "function": {"name": use.name, "arguments": use.arguments or "{}"},
        }
        for use in said.blocks
        if isinstance(use, ToolUse)
    ]
    text = sendable(plain_text(said.blocks))
    if not calls and not text.strip():
        return None
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = calls
    reasoning = "".join(
        b.text for b in said.blocks if isinstance(b, Thinking) and source and b.source == source
    )
    if reasoning:
        message["reasoning_content"] = sendable(reasoning)
    return message


def _result(block: ToolResult) -> dict[str, Any]:
    # There is no field for failure here: it is said in words.
    text = f"Error: {block.text}" if block.is_error else block.text
    return {"role": "tool", "tool_call_id": block.call_id, "content": sendable(text)}
