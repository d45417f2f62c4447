"""What the HTTP surface tells of segments, and of the prompt as it stands."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import msgspec

from mira.messages.segment import SegmentState
from mira.store.renders import Render
from mira.store.segments import SegmentRecord
from mira.store.summaries import SummaryRecord


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a segment was, in the first person. `drift` is the share of its sentences that the
    segment does not bear out; `model` is null where no model wrote it."""

    trace: str
    precis: str
    complexity: float
    drift: float
    provider: str | None
    model: str | None
    made_at: datetime
    rechecked_at: datetime | None


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of the conversation between silences. `summary` is null until it is written."""

    id: UUID
    state: SegmentState
    opened_at: datetime
    last_message_at: datetime
    collapsed_at: datetime | None
    title: str | None
    tools: tuple[str, ...]
    summary: Summary | None

    @classmethod
    def of(cls, record: SegmentRecord, summary: SummaryRecord | None = None) -> Segment:
        return cls(
            id=record.id,
            state=record.state,
            opened_at=record.opened_at,
            last_message_at=record.last_message_at,
            collapsed_at=record.collapsed_at,
            title=record.title,
            tools=record.tools,
            summary=None
            if summary is None
            else Summary(
                trace=summary.trace,
                precis=summary.precis,
                complexity=summary.complexity,
                drift=summary.drift,
                provider=summary.provider,
                model=summary.model,
                made_at=summary.made_at,
                rechecked_at=summary.rechecked_at,
            ),
        )


class SegmentPage(msgspec.Struct, frozen=True, kw_only=True):
    segments: tuple[Segment, ...]
    next_cursor: str | None


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A section of the prompt as it was last sent. `placement` says where it stands."""

    name: str
    placement: str
    text: str
    tokens: int
    turn_id: UUID
    at: datetime
    error: str | None

    @classmethod
    def of(cls, render: Render) -> Section:
        return cls(**msgspec.structs.asdict(render))


class WorkingMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The sections of the last prompt, in its order; empty when the cache has lost them."""

    sections: tuple[Section, ...]
