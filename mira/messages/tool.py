"""Tools as the turn sees them: descriptions for the model, calls, outcomes."""

from __future__ import annotations

from uuid import UUID

from mira.messages.base import Value


class ToolDescription(Value, frozen=True, kw_only=True):
    """What the model is told of a tool. `parameters` is the JSON schema, as JSON text."""

    name: str
    description: str
    parameters: str
    parallel_safe: bool = False
    #: Changes the world outside: journalled, never repeated after a crash.
    effect: bool = False


class ToolCall(Value, frozen=True, kw_only=True):
    """A call to make. `arguments` is JSON text of an object."""

    turn_id: UUID
    call_id: str
    name: str
    arguments: str


class ToolOutcome(Value, frozen=True, kw_only=True):
    """What came of a call. `pending` means: it waits for the user's confirmation."""

    text: str
    is_error: bool = False
    pending: bool = False
