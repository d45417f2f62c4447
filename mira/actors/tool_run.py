"""The port to tools: what a turn may call, and how."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from mira.messages.tool import ToolCall, ToolDescription, ToolOutcome


class ToolRun(Protocol):
    """The tools of one turn. Calls run in the task of the turn, which may be cancelled."""

    def menu(self) -> tuple[ToolDescription, ...]:
        """What the model is told of now, in an order that changes as little as possible."""
        ...

    def needs_confirmation(self, call: ToolCall) -> bool:
        """Whether the call must wait for the user's word."""
        ...

    async def call(self, call: ToolCall) -> ToolOutcome:
        """Make one call. A failure is an outcome; only what is a bug raises.

        It is cancelled when it takes too long, or its turn is stopped.
        """
        ...


class Tools(Protocol):
    """Hands out the tools of a turn."""

    async def open(self, user_id: UUID, turn_id: UUID) -> ToolRun: ...


class _Nothing:
    def menu(self) -> tuple[ToolDescription, ...]:
        return ()

    def needs_confirmation(self, call: ToolCall) -> bool:
        return False

    async def call(self, call: ToolCall) -> ToolOutcome:
        return ToolOutcome(text=f"There is no tool named {call.name}.", is_error=True)


class NoTools:
    """No tools at all."""

    async def open(self, user_id: UUID, turn_id: UUID) -> ToolRun:
        return _Nothing()
