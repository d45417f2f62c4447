"""What the HTTP surface tells of how an answer came about."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from mira.llm.prices import list_price
from mira.messages.content import ToolResult, ToolUse
from mira.messages.turn import Timings, TurnState, Usage
from mira.store.history import HistoryMessage
from mira.store.traces import Trace
from mira.store.turn_account import TurnAccount
from mira.store.turn_calls import TurnCall


class CallOfModel(msgspec.Struct, frozen=True, kw_only=True):
    """One physical call. Tokens are estimates unless the provider has `reported` them. `cost_usd`
    is what they come to at list prices; null where none is known for the model."""

    id: UUID
    purpose: str
    provider: str
    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reported: bool
    first_event_ms: float | None
    total_ms: float
    error: str | None
    at: datetime
    cost_usd: float | None

    @classmethod
    def of(cls, call: TurnCall) -> CallOfModel:
        """Takes up to a second the first time: see mira.llm.prices."""
        usage = Usage(
            input_tokens=call.input_tokens,
            output_tokens=call.output_tokens,
            cache_read_tokens=call.cache_read_tokens,
            cache_write_tokens=call.cache_write_tokens,
        )
        cost = list_price(call.provider, call.model, usage, call.at)
        return cls(**msgspec.structs.asdict(call), cost_usd=None if cost is None else float(cost))


class CallOfTool(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a tool. `message_id` names the message with its result, of so many `characters`;
    both are null for a call that was never made or never ended."""

    call_id: str
    name: str
    message_id: UUID | None = None
    is_error: bool = False
    characters: int | None = None


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a search considered, a memory or a message. `detail` says what each lane
    said and why it was kept or dropped; empty once the trace is old."""

    id: UUID
    score: float
    detail: dict[str, Any]


class Retrieval(msgspec.Struct, frozen=True, kw_only=True):
    """One search: what was asked (null once it is old), the candidates, best first, which of
    them were shown to the model, and which of those it used."""

    id: UUID
    purpose: str
    at: datetime
    query: dict[str, Any] | None
    candidates: tuple[Candidate, ...]
    surfaced: tuple[UUID, ...]
    used: tuple[UUID, ...]

    @classmethod
    def of(cls, trace: Trace) -> Retrieval:
        return cls(
            id=trace.id,
            purpose=trace.purpose,
            at=trace.at,
            query=trace.query,
            candidates=tuple(_candidate(one) for one in trace.results),
            surfaced=trace.surfaced,
            used=trace.used,
        )


class TurnTrace(msgspec.Struct, frozen=True, kw_only=True):
    """What led to the answer of a turn. `calls` and `retrievals` are in their order, those of
    earlier attempts included; `cost_usd` is what the calls come to, null if that is not known of
    one of them. `account` and `tools` are those of the last attempt; `account` is null for a turn
    that was never composed."""

    turn_id: UUID
    state: TurnState
    attempt: int
    usage: Usage | None
    timings: Timings | None
    calls: tuple[CallOfModel, ...]
    cost_usd: float | None
    tools: tuple[CallOfTool, ...]
    retrievals: tuple[Retrieval, ...]
    account: TurnAccount | None


def _candidate(row: dict[str, Any]) -> Candidate:
    detail = {name: value for name, value in row.items() if name not in ("id", "score")}
    return Candidate(id=UUID(row["id"]), score=float(row["score"]), detail=detail)


def tools_of(messages: Sequence[HistoryMessage]) -> tuple[CallOfTool, ...]:
    """The calls of tools in the messages of a turn, in their order."""
    results = {
        block.call_id: (message.id, block)
        for message in messages
        for block in message.blocks
        if isinstance(block, ToolResult)
    }
    calls = [
        block for message in messages for block in message.blocks if isinstance(block, ToolUse)
    ]
    found = []
    for call in calls:
        message_id, result = results.get(call.call_id, (None, None))
        found.append(
            CallOfTool(
                call_id=call.call_id,
                name=call.name,
                message_id=message_id,
                is_error=bool(result and result.is_error),
                characters=len(result.text) if result else None,
            )
        )
    return tuple(found)


def total(calls: Sequence[CallOfModel]) -> float | None:
    """What calls come to together, if it is known of each."""
    known = [call.cost_usd for call in calls if call.cost_usd is not None]
    return sum(known) if len(known) == len(calls) else None
