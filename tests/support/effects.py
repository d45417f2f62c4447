"""Tools for tests: real effects on real files, counted by what they leave behind."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import UUID

from mira.actors.tool_run import ToolRun
from mira.messages.tool import ToolCall, ToolDescription, ToolOutcome

_TEXT = json.dumps(
    {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
)


class FileTools:
    """`note` appends a line to a file (an effect); `read` reads it; `send` needs confirmation."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def open(self, user_id: UUID, turn_id: UUID) -> ToolRun:
        return _Run(self._path)


class _Run:
    def __init__(self, path: Path) -> None:
        self._path = path

    def menu(self) -> tuple[ToolDescription, ...]:
        return (
            ToolDescription(
                name="note", description="Write a line down.", parameters=_TEXT, effect=True
            ),
            ToolDescription(
                name="read", description="Read all lines.", parameters='{"type": "object"}',
                parallel_safe=True,
            ),
            ToolDescription(
                name="send", description="Send a line away.", parameters=_TEXT, effect=True
            ),
        )  # fmt: skip

    def needs_confirmation(self, call: ToolCall) -> bool:
        return call.name == "send"

    async def call(self, call: ToolCall) -> ToolOutcome:
        if call.name == "read":
            return ToolOutcome(text=self._path.read_text() if self._path.exists() else "nothing")
        text = json.loads(call.arguments).get("text", "")
        with self._path.open("a") as file:
            file.write(f"{call.name}: {text}\n")
        return ToolOutcome(text=f"{call.name} done: {text}")
