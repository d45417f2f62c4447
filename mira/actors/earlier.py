"""What the prompt holds of everything before the open segment's live turns.

Read when the door takes over and when it changes: a segment opens or ends, a summary or a brief is
there. Between those it is the same, byte for byte, so that the prompt can be cached; what it costs
does not grow with the history.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import msgspec

from mira.actors.live_turns import read
from mira.prompt.inputs import ManifestRow, SummaryView
from mira.prompt.turn import Turn
from mira.store import briefs, history, segments, summaries
from mira.store.briefs import Brief
from mira.store.database import Tx

#: Turns of the segment before, word for word; so many more while its summary is not there.
CONTINUITY = 2
UNSUMMARISED = 10
#: Characters of stored content that those may take.
LONGEST = 60_000
#: Rows of the list of segments, and summaries to choose from.
MANIFEST = 30
SUMMARIES = 10


class Earlier(msgspec.Struct, frozen=True, kw_only=True):
    """`open_id` is the open segment, if there is one, and `brief` stands for its older turns."""

    open_id: UUID | None = None
    summaries: tuple[SummaryView, ...] = ()
    manifest: tuple[ManifestRow, ...] = ()
    continuity: tuple[Turn, ...] = ()
    message_ids: frozenset[UUID] = frozenset()
    ended_at: datetime | None = None
    brief: Brief | None = None


async def read_earlier(tx: Tx, user_id: UUID) -> Earlier:
    """As it stands now."""
    rows = await segments.page(tx, user_id, before=None, limit=MANIFEST)
    made = await summaries.newest(tx, user_id, limit=SUMMARIES)
    open_one = next((row for row in rows if row.state.open), None)
    ended = [row for row in rows if not row.state.open]
    tail = []
    if ended:
        summarised = any(one.segment_id == ended[0].id for one in made)
        tail = read(
            await history.of_segment(
                tx, user_id, ended[0].id, characters=LONGEST,
                turns=CONTINUITY if summarised else UNSUMMARISED,
            )
        )  # fmt: skip
    return Earlier(
        open_id=open_one.id if open_one else None,
        summaries=tuple(
            SummaryView(
                segment_id=one.segment_id,
                title=one.title,
                trace=one.trace,
                precis=one.precis,
                complexity=one.complexity,
                started_at=one.started_at,
                ended_at=one.ended_at,
            )
            for one in made
        ),
        manifest=tuple(
            ManifestRow(
                title=row.title,
                started_at=row.opened_at,
                ended_at=None if row.state.open else row.last_message_at,
            )
            for row in rows
        ),
        continuity=tuple(one.turn for one in tail),
        message_ids=frozenset(i for one in tail for i in one.message_ids),
        ended_at=ended[0].last_message_at if ended else None,
        brief=await briefs.newest(tx, user_id, open_one.id) if open_one else None,
    )
