"""Summaries that failed: how they stand, and asking for one again before its time."""

from __future__ import annotations

from uuid import UUID

from mira.actors.memory_keeper_parts import SUMMARIES, keeper_of
from mira.actors.runtime.system import ActorSystem
from mira.errors import Conflict
from mira.messages.memory import SummariseSegment
from mira.store import segments, summaries, summary_waits
from mira.store.database import Tx
from mira.store.summary_waits import SummaryWait


async def waits(tx: Tx, user_id: UUID, segment_ids: list[UUID]) -> dict[UUID, SummaryWait]:
    """Those of these segments whose summary was tried in vain and will be tried again."""
    found = await summary_waits.of_segments(tx, keeper_of(user_id), segment_ids)
    return {segment_id: wait for segment_id, wait in found.items() if wait.in_vain}


async def ask_again(system: ActorSystem, tx: Tx, user_id: UUID, segment_id: UUID) -> None:
    """Make the summary of a segment due now, with as many tries as a new one has.

    Asked twice it is still made once. How often it has failed is not forgotten. Raises NotFound,
    and Conflict for a segment that is open or has its summary.
    """
    segment = await segments.get(tx, user_id, segment_id)
    if segment.state.open:
        raise Conflict("The segment is still open: it is summed up when it ends.")
    if segment_id in await summaries.of_segments(tx, user_id, [segment_id]):
        raise Conflict("The segment has its summary.")
    wait = (await summary_waits.of_segments(tx, keeper_of(user_id), [segment_id])).get(segment_id)
    # Where it waits already it is replaced, so that nothing is left to fall due a day later.
    await system.tell_durable(
        tx, keeper_of(user_id),
        SummariseSegment(segment_id=segment_id, failed=wait.failures if wait else 0),
        lane=wait.lane if wait else SUMMARIES, key=str(segment_id),
    )  # fmt: skip
