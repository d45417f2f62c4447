"""Summaries that were tried in vain and wait to be tried again, read from the undone work."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import msgspec

from mira.messages.base import Address
from mira.messages.memory import SummariseSegment
from mira.messages.wire import decode_durable
from mira.store.database import Tx


class SummaryWait(msgspec.Struct, frozen=True, kw_only=True):
    """The undone work of one summary: where it stands, how often it failed, when it is due.

    `unreached`: the last try found no model to ask, which counts as no failure.
    """

    lane: str
    failures: int
    due_at: datetime
    unreached: bool

    @property
    def in_vain(self) -> bool:
        """Whether it was tried at all; otherwise it is simply to be done."""
        return self.failures > 0 or self.unreached


_WAITING = """
select key, lane, payload::text, attempts, due_at, last_error is not null as troubled from outbox
where kind = $1 and address = $2 and key = any($3::text[])
  and payload ->> 'type' = 'SummariseSegment'
order by due_at desc, id
"""


async def of_segments(tx: Tx, keeper: Address, segment_ids: list[UUID]) -> dict[UUID, SummaryWait]:
    """What is undone for these segments; of two for one segment the one that is due first."""
    found: dict[UUID, SummaryWait] = {}
    keys = [str(one) for one in segment_ids]
    for row in await tx.fetch(_WAITING, keeper.kind, keeper.key, keys):
        message = decode_durable(row["payload"])
        assert isinstance(message, SummariseSegment)
        failures = message.failed + row["attempts"]
        found[message.segment_id] = SummaryWait(
            lane=row["lane"],
            failures=failures,
            due_at=row["due_at"],
            unreached=row["attempts"] == 0 and row["troubled"],
        )
    return found
