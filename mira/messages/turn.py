"""Turns: their states, what the door of a conversation is told, and what it publishes."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from mira.messages.base import Event, Message, Value


class TurnState(StrEnum):
    RECEIVED = "received"
    RUNNING = "running"
    COMPLETE = "complete"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"
    FAILED = "failed"

    @property
    def final(self) -> bool:
        return self not in (TurnState.RECEIVED, TurnState.RUNNING)


class Usage(Value, frozen=True, kw_only=True):
    """Tokens of one or more model calls. `reported` is False where the provider said nothing."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    calls: int = 0
    reported: bool = True

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            calls=self.calls + other.calls,
            reported=self.reported and other.reported,
        )


class Timings(Value, frozen=True, kw_only=True):
    """Milliseconds from the acceptance of a turn to each of its stages; None if not reached."""

    started_ms: float | None = None
    recalled_ms: float | None = None
    composed_ms: float | None = None
    first_text_ms: float | None = None
    streamed_ms: float | None = None
    committed_ms: float | None = None


# Commands to the door.


class TakeTurns(Message, frozen=True, kw_only=True):
    """Turns may be waiting: take the next. Durable, one per conversation."""

    at: datetime


class CancelTurn(Message, frozen=True, kw_only=True):
    """Stop this turn. Travels on the control lane; a turn that is final stays as it is."""

    turn_id: UUID


class SettleAction(Message, frozen=True, kw_only=True):
    """The user has decided on a pending action: execute the stored call once, or refuse it."""

    action_id: UUID
    at: datetime


# Events, published by the door.


class TurnStarted(Event, frozen=True, kw_only=True):
    user_id: UUID
    turn_id: UUID
    seq: int
    attempt: int
    at: datetime


class TurnCompleted(Event, frozen=True, kw_only=True):
    user_id: UUID
    turn_id: UUID
    seq: int
    segment_id: UUID | None
    at: datetime
    usage: Usage


class TurnCancelled(Event, frozen=True, kw_only=True):
    user_id: UUID
    turn_id: UUID
    seq: int
    at: datetime


class TurnInterrupted(Event, frozen=True, kw_only=True):
    user_id: UUID
    turn_id: UUID
    seq: int
    at: datetime


class TurnFailed(Event, frozen=True, kw_only=True):
    user_id: UUID
    turn_id: UUID
    seq: int
    at: datetime
    code: str


class UseDayAdvanced(Event, frozen=True, kw_only=True):
    """The first message of a local day was taken; `ordinal` counts the user's use-days from 1."""

    user_id: UUID
    turn_id: UUID
    ordinal: int


class PromptComposed(Event, frozen=True, kw_only=True):
    user_id: UUID
    turn_id: UUID
    tokens_estimated: int
    messages: int


class TrinketRendered(Event, frozen=True, kw_only=True):
    """A section of the prompt is another than it was in the last; `tokens` is 0 if it is gone."""

    user_id: UUID
    turn_id: UUID
    name: str
    placement: str
    tokens: int


class WorkingStateChanged(Event, frozen=True, kw_only=True):
    """What the door keeps from turn to turn has changed; `surfaced` counts memories in context."""

    user_id: UUID
    turn_id: UUID | None
    surfaced: int


class ToolCalled(Event, frozen=True, kw_only=True):
    """A tool has answered a call, or has failed at it. At most once: of a call that was cut off,
    refused, or waits for the user nothing is told."""

    user_id: UUID
    turn_id: UUID
    call_id: str
    tool: str
    ok: bool
