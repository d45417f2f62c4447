"""Our request in Anthropic's words: parameters of one call of the Messages API."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from mira.llm.base import Effort, Request
from mira.llm.text import sendable, sendable_json
from mira.messages.content import (
    Document,
    Image,
    RedactedThinking,
    Role,
    Said,
    Shown,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)

#: The API accepts this many cache marks in one request.
CACHE_MARKS = 4

#: Thinks by its own measure, asked or not.
_ALWAYS_ADAPTIVE = re.compile(r"claude-[a-z]+-[5-9]")
#: Thinks by its own measure when asked.
_ADAPTIVE = re.compile(r"claude-(opus-4-[6-9]|sonnet-4-[6-9])")
_TAKES_EFFORT = re.compile(r"claude-(opus-4-[5-9]|sonnet-4-[6-9]|[a-z]+-[5-9])")
#: Answers in the form of a given schema.
_TAKES_SCHEMA = re.compile(r"claude-(opus-4-1(?!\d)|(opus|sonnet|haiku)-4-[5-9]|[a-z]+-[5-9])")

#: Thinking tokens for models that want a budget, by effort.
_BUDGET = {Effort.LOW: 1024, None: 4096, Effort.MEDIUM: 4096, Effort.HIGH: 16384}


def window_of(model: str) -> int:
    """Tokens that a model holds, input and output together."""
    return 1_000_000 if _ALWAYS_ADAPTIVE.match(model) else 200_000


def parameters(model: str, source: str, request: Request) -> tuple[dict[str, Any], list[str]]:
    """Keyword arguments for `messages.create`, and what had to be left out.

    `source` is the `provider:model` whose thinking may go back.
    """
    dropped: list[str] = []
    system, marks = _system(request)
    wanted: dict[str, Any] = {
        "model": model,
        "max_tokens": request.max_output_tokens,
        "messages": messages(request, source, marks=CACHE_MARKS - marks),
    }
    if system:
        wanted["system"] = system
    if request.tools:
        wanted["tools"] = [
            {
                "name": tool.name,
                "description": sendable(tool.description),
                "input_schema": json.loads(tool.parameters),
            }
            for tool in request.tools
        ]
    if _ALWAYS_ADAPTIVE.match(model) or (request.thinking and _ADAPTIVE.match(model)):
        # Summaries are asked for even when nobody will see them: without them such a model is
        # silent while it thinks, and silence cannot be told from a stall.
        wanted["thinking"] = {"type": "adaptive", "display": "summarized"}
    elif request.thinking:
        budget = _BUDGET[request.effort]
        wanted["thinking"] = {"type": "enabled", "budget_tokens": budget}
        wanted["max_tokens"] += budget
    if request.effort is not None:
        if _TAKES_EFFORT.match(model):
            wanted["output_config"] = {"effort": request.effort.value}
        elif not request.thinking:
            dropped.append("effort")
    if request.answer_schema is not None:
        if _TAKES_SCHEMA.match(model):
            form = {"type": "json_schema", "schema": json.loads(request.answer_schema)}
            wanted["output_config"] = {**wanted.get("output_config", {}), "format": form}
        else:
            dropped.append("answer_schema")
    return wanted, dropped


def without_schema(wanted: dict[str, Any]) -> dict[str, Any] | None:
    """The same call with no form for the answer; None if it has none."""
    if "format" not in wanted.get("output_config", {}):
        return None
    rest = {name: value for name, value in wanted["output_config"].items() if name != "format"}
    bare = {name: value for name, value in wanted.items() if name != "output_config"}
    return {**bare, "output_config": rest} if rest else bare


def without_thinking(wanted: dict[str, Any]) -> dict[str, Any] | None:
    """The same call with no thinking sent back; None if there was none in it."""
    kept = [
        {**message, "content": [b for b in message["content"] if "thinking" not in b["type"]]}
        for message in wanted["messages"]
    ]
    if kept == wanted["messages"]:
        return None
    changed = {**wanted, "messages": [message for message in kept if message["content"]]}
    if changed.get("thinking", {}).get("type") == "enabled":
        # With a budget, a tool loop must begin with its thinking: then none at all.
        del changed["thinking"]
    return changed


def _system(request: Request) -> tuple[list[dict[str, Any]], int]:
    """The system blocks, and how many marks they carry. The first mark lives for an hour: marks
    that live longer must stand before those that live five minutes."""
    blocks: list[dict[str, Any]] = []
    marked: list[dict[str, Any]] = []
    for block in request.system:
        if not block.text.strip():
            continue
        wire: dict[str, Any] = {"type": "text", "text": sendable(block.text)}
        blocks.append(wire)
        if block.cache:
            marked.append(wire)
    room = max(1, CACHE_MARKS - len(request.cache_marks))
    # Too many marks: the first is the most stable, the last ones reach furthest.
    kept = marked if len(marked) <= room else [marked[0], *marked[len(marked) - room + 1 :]]
    for index, wire in enumerate(kept):
        wire["cache_control"] = (
            {"type": "ephemeral"} if index else {"type": "ephemeral", "ttl": "1h"}
        )
    return blocks, len(kept)


def messages(request: Request, source: str, *, marks: int = CACHE_MARKS) -> list[dict[str, Any]]:
    """The messages as user and assistant in turn, each with at least one block; at most `marks`
    of the cache marks that are asked for, the last ones.

    Thinking goes back only within the loop of tools that is under way, and only to the model
    that it came from. Older thinking is left out: its signature holds only for the prompt it was
    made in, and ours is composed anew for each turn.
    """
    loop = _start_of_loop(request.messages)
    marked = set(request.cache_marks[-marks:]) if marks > 0 else set()
    wire: list[dict[str, Any]] = []
    for index, said in enumerate(request.messages):
        role = "assistant" if said.role is Role.ASSISTANT else "user"
        keep = source if index >= loop else ""
        content = [b for block in said.blocks if (b := _block(block, keep)) is not None]
        if content:
            if wire and wire[-1]["role"] == role:
                wire[-1]["content"].extend(content)
            else:
                wire.append({"role": role, "content": content})
        if wire and index + 1 in marked:
            _mark(wire[-1]["content"])
    return wire


def _start_of_loop(said: Sequence[Said]) -> int:
    """The index after the last message of the user."""
    for index in range(len(said) - 1, -1, -1):
        if said[index].role is Role.USER:
            return index + 1
    return 0


def _mark(content: list[dict[str, Any]]) -> None:
    for block in reversed(content):
        if "thinking" not in block["type"]:  # thinking cannot carry a mark
            block["cache_control"] = {"type": "ephemeral"}
            return


def _block(block: Shown, source: str) -> dict[str, Any] | None:
    match block:
        case Text(text=text):
            # Blank blocks are refused, though models write them.
            return {"type": "text", "text": sendable(text)} if text.strip() else None
        case Thinking():
            if not block.signature or not source or block.source != source:
                return None
            return {"type": "thinking", "thinking": block.text, "signature": block.signature}
        case RedactedThinking():
            if not source or block.source != source:
                return None
            return {"type": "redacted_thinking", "data": block.data}
        case ToolUse():
            return {
                "type": "tool_use",
                "id": _call_id(block.call_id),
                "name": block.name,
                "input": _object(block.arguments),
            }
        case ToolResult():
            result: dict[str, Any] = {
                "type": "tool_result",
                "tool_use_id": _call_id(block.call_id),
                "content": [{"type": "text", "text": sendable(block.text)}]
                if block.text.strip()
                else [],
            }
            if block.is_error:
                result["is_error"] = True
            return result
        case Image():
            return {"type": "image", "source": _source(block.media_type, block.content)}
        case Document(words=words, content=b""):
            return {"type": "text", "text": sendable(words)}
        case Document():
            # Its words are for those who cannot read such files.
            return {
                "type": "document",
                "source": _source(block.media_type, block.content),
                "title": sendable(block.name),
            }
        case _:
            return None


def _source(media_type: str, content: bytes) -> dict[str, Any]:
    return {"type": "base64", "media_type": media_type, "data": b64encode(content).decode()}


def _object(raw: str) -> dict[str, Any]:
    try:
        value = sendable_json(json.loads(raw or "{}"))
    except (ValueError, RecursionError):
        value = None
    # One call in the past must not make every later request impossible.
    return value if isinstance(value, dict) else {"unreadable": sendable(raw)}


def _call_id(given: str) -> str:
    """The id in the letters that the API allows; ids of other providers may have more."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", given)
