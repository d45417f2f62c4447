"""Our request in the words of OpenAI's chat completions, as their many imitators take it."""

from __future__ import annotations

import json
from typing import Any

from mira.llm.base import Request
from mira.llm.text import sendable
from mira.messages.content import Role, Said, Text, Thinking, ToolResult, ToolUse, plain_text

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
    loop = max((i for i, m in enumerate(request.messages) if m.role is Role.USER), default=-1)
    for index, said in enumerate(request.messages):
        if said.role is Role.ASSISTANT:
            if message := _assistant(said, source if index > loop else ""):
                wire.append(message)
            continue
        wire.extend(_result(block) for block in said.blocks if isinstance(block, ToolResult))
        text = _text(said)
        if not text:
            continue
        if wire and wire[-1]["role"] == "user":
            wire[-1]["content"] += _BETWEEN + text
        else:
            wire.append({"role": "user", "content": text})
    return wire


def _text(said: Said) -> str:
    return sendable(
        _BETWEEN.join(b.text for b in said.blocks if isinstance(b, Text) and b.text.strip())
    )


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
