"""What the turn of a use-day does to memories: scores anew, and what earns nothing is put away."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from mira.memory.steps import Steps
from mira.store import memories, memory_scores
from mira.store.database import Tx
from mira.store.memories import Memory
from mira.store.memory_events import Fields


async def recalculate(tx: Tx, user_id: UUID, now: datetime, *, dated: bool = False) -> int:
    """Store every active memory's score as of `now`; returns how many changed.

    `dated`: only of those with a date near `now`, which change with the calendar.
    """
    await memories.lock(tx, user_id)
    return await memory_scores.recalculate(tx, user_id, now, dated=dated)


async def forget(steps: Steps, tx: Tx, user_id: UUID, *, limit: int = 500) -> list[UUID]:
    """Archive memories whose score has been under the floor for seven use-days running; returns
    which. Each is a step of its own, by `decay`, that can be undone."""
    await memories.lock(tx, user_id)
    use_day = await memories.use_days(tx, user_id)
    ids = await memory_scores.sinking(tx, user_id, use_day, limit=limit)
    for memory in (await memories.find(tx, user_id, ids)).values():
        journal = await steps.begin(tx, user_id, {}, actor="decay", turn_id=None)
        await journal.change("archived", memory, Fields(status="archived"))
        await journal.write()
    return ids


async def sinking(tx: Tx, user_id: UUID, *, within: int, limit: int) -> list[Memory]:
    """Memories that will be archived in at most `within` use-days if nothing happens, the nearest
    first: what the floor review looks at."""
    use_day = await memories.use_days(tx, user_id)
    ids = await memory_scores.sinking(
        tx, user_id, use_day, for_days=memory_scores.PATIENCE - within, limit=limit
    )
    found = await memories.find(tx, user_id, ids)
    return [found[one] for one in ids]
