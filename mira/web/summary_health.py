"""How it stands with a user's summaries, for whoever runs the house: how true, and how late."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from mira.store import drift_checks, segments
from mira.store.database import Database

#: The newest summaries that are looked at.
NEWEST = 20
#: A segment that ended longer ago and has no summary is overdue. A model that fails is asked again
#: after a day, so this is more than one bad hour.
PATIENCE = timedelta(days=1)
#: So many overdue segments are named.
NAMED = 20


class OverdueSegment(msgspec.Struct, frozen=True, kw_only=True):
    """A segment that ended more than a day ago and still has no summary."""

    id: UUID
    ended_at: datetime


class SummaryHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The newest `looked_at` summaries: drift is the share of sentences that a segment does not
    bear out, and `worst` names the segment of the least true summary. `overdue` are the oldest
    segments without one."""

    looked_at: int
    mean_drift: float
    worst_drift: float
    worst: UUID | None
    overdue: tuple[OverdueSegment, ...]


async def of_user(database: Database, user_id: UUID, now: datetime) -> SummaryHealth:
    """As it stands now."""
    async with database.user(user_id) as tx:
        found = await drift_checks.recent(tx, user_id, limit=NEWEST)
        late = await segments.overdue(tx, user_id, before=now - PATIENCE, limit=NAMED)
    return SummaryHealth(
        looked_at=found.summaries,
        mean_drift=round(found.mean, 4),
        worst_drift=round(found.worst, 4),
        worst=found.worst_segment if found.worst > 0 else None,
        overdue=tuple(OverdueSegment(id=one, ended_at=at) for one, at in late),
    )
