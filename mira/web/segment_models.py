"""What the HTTP surface tells of segments, and of the prompt as it stands."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import msgspec

from mira.messages.segment import SegmentState
from mira.store.renders import Render
from mira.store.segments import SegmentRecord
from mira.store.summaries import SummaryRecord
from mira.store.summary_waits import SummaryWait


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


class SummaryTrouble(msgspec.Struct, frozen=True, kw_only=True):
    """A summary that was tried in vain: how often a model failed at it, and when it is tried next
    by itself. `unreached`: the last time none could be asked, which counts as no failure."""

    failures: int
    unreached: bool
    next_try_at: datetime


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of the conversation between silences. `summary` is null until it is written;
    `trouble` is null unless it was tried in vain."""

    id: UUID
    state: SegmentState
    opened_at: datetime
    last_message_at: datetime
    collapsed_at: datetime | None
    title: str | None
    tools: tuple[str, ...]
    summary: Summary | None
    trouble: SummaryTrouble | None

    @classmethod
    def of(
        cls,
        record: SegmentRecord,
        summary: SummaryRecord | None = None,
        wait: SummaryWait | None = None,
    ) -> Segment:
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
            # With a summary there is nothing left to worry about, though it is tried once more.
            trouble=None
            if wait is None or summary is not None
            else SummaryTrouble(
                failures=wait.failures, unreached=wait.unreached, next_try_at=wait.due_at
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
