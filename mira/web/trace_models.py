"""What the HTTP surface tells of how an answer came about."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from mira.messages.turn import Timings, TurnState, Usage
from mira.store.traces import Trace
from mira.store.turn_account import TurnAccount


class CallOfModel(msgspec.Struct, frozen=True, kw_only=True):
    """One physical call. Tokens are estimates unless the provider has `reported` them."""

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
    earlier attempts included; `account` is that of the last attempt, null for a turn that was
    never composed."""

    turn_id: UUID
    state: TurnState
    attempt: int
    usage: Usage | None
    timings: Timings | None
    calls: tuple[CallOfModel, ...]
    retrievals: tuple[Retrieval, ...]
    account: TurnAccount | None


def _candidate(row: dict[str, Any]) -> Candidate:
    detail = {name: value for name, value in row.items() if name not in ("id", "score")}
    return Candidate(id=UUID(row["id"]), score=float(row["score"]), detail=detail)
