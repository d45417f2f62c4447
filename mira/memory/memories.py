"""The memory of each user: the one face of it that the rest of the house knows.

A memory is named by its id or its short id; one of another user is NotFound, as one that never was.
What changes memories is in changes.py, how they are searched in search.py.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import msgspec

from mira.clock import Clock
from mira.errors import NotFound
from mira.ids import Ids
from mira.memory import forgetting, linking
from mira.memory.changes import Changes, Recogniser
from mira.memory.encoding import Encoders
from mira.memory.entities import normalise
from mira.memory.model import LinkedMemory, NewMemory, Ref, Stored
from mira.memory.query import RecallQuery
from mira.memory.ranking import Blend
from mira.memory.scoring import Explanation, ScoreInputs, explain
from mira.memory.search import LINKED, MemoryRanking, MemorySearch
from mira.store import (
    entities,
    memories,
    memory_annotations,
    memory_events,
    memory_links,
    memory_scores,
)
from mira.store.database import Database, Tx
from mira.store.entities import EntityView
from mira.store.memories import Memory, Order
from mira.store.memory_events import Annotation, Link, MemoryEvent, Status
from mira.store.memory_search import SHARED

#: How many memories one page shows at most, and how many a picture.
PAGE, PICTURE = 200, 500


class Graph(msgspec.Struct, frozen=True, kw_only=True):
    """Memories and entities as a picture: nodes, the links between the memories, and which memory
    is about which entity."""

    memories: tuple[Memory, ...]
    entities: tuple[EntityView, ...]
    links: tuple[Link, ...]
    about: tuple[tuple[UUID, UUID], ...]


class Memories(Changes):
    """See the module. Safe to use from many tasks at once."""

    def __init__(
        self, database: Database, encoders: Encoders, recogniser: Recogniser | None, clock: Clock,
        ids: Ids, blend: Blend | None = None,
    ) -> None:  # fmt: skip
        super().__init__(database, encoders, recogniser, clock, ids)
        self._search = MemorySearch(database, encoders, clock, ids, blend)

    async def search(
        self, user_id: UUID, query: RecallQuery, *, limit: int | None = None,
        turn_id: UUID | None = None, purpose: str = "search", traced: bool = True,
        linked: int = LINKED,
    ) -> MemoryRanking:  # fmt: skip
        """What has to do with what is looked for, best first. See search.MemorySearch."""
        return await self._search.search(
            user_id, query, limit=limit, turn_id=turn_id, purpose=purpose, traced=traced,
            linked=linked,
        )  # fmt: skip

    async def get(self, user_id: UUID, ref: Ref) -> Memory:
        """Raises NotFound."""
        async with self._database.user(user_id) as tx:
            return await memories.get(tx, user_id, ref)

    async def page(
        self, user_id: UUID, *, status: Status | None = "active", order: Order = "recent",
        before: tuple[datetime | float, UUID] | None = None, limit: int = 50,
    ) -> list[Memory]:  # fmt: skip
        """At most `limit` (200) memories, newest or most important first. `before` continues:
        (created_at or importance, id) of the last one seen."""
        async with self._database.user(user_id) as tx:
            return await memories.page(
                tx, user_id, status=status, order=order, before=before, limit=min(limit, PAGE)
            )

    async def history(self, user_id: UUID, ref: Ref) -> list[MemoryEvent]:
        """What happened to a memory, oldest first; by its id also of one that is gone.

        Raises NotFound if nothing ever did.
        """
        async with self._database.user(user_id) as tx:
            known = await memories.resolve(tx, user_id, [ref])
            memory_id = known.get(ref, ref)
            events = (
                await memory_events.of_memory(tx, user_id, memory_id)
                if isinstance(memory_id, UUID)
                else []
            )
        if not events:
            raise NotFound("There is no such memory.")
        return events

    async def annotations(self, user_id: UUID, ref: Ref) -> list[Annotation]:
        """The remarks on a memory, oldest first. Raises NotFound."""
        async with self._database.user(user_id) as tx:
            memory = await memories.get(tx, user_id, ref)
            return await memory_annotations.of_memory(tx, user_id, memory.id)

    async def entities(
        self, user_id: UUID, *, before: tuple[int, UUID] | None = None, limit: int = 50,
        q: str | None = None,
    ) -> list[EntityView]:  # fmt: skip
        """Entities, those of most memories first; `q` asks for those whose name holds it.
        `before` continues: (memories, id) of the last one seen."""
        async with self._database.user(user_id) as tx:
            return await entities.page(
                tx, user_id, before=before, limit=min(limit, PAGE), q=normalise(q) if q else None
            )

    async def links(self, user_id: UUID, ref: Ref, *, depth: int = 1) -> list[LinkedMemory]:
        """Every link of a memory, either way, and what is reached from there within `depth` (at
        most 3) links; the strongest first, archived ones too. Raises NotFound."""
        async with self._database.user(user_id) as tx:
            memory = await memories.get(tx, user_id, ref)
            ways = await linking.around(tx, user_id, memory.id, depth=depth)
            rows = await memories.find(tx, user_id, [way.at for way in ways])
        return [linking.reached(way, rows[way.at]) for way in ways if way.at in rows]

    async def explain(self, user_id: UUID, ref: Ref) -> Explanation:
        """The memory's score at this moment, term by term. Raises NotFound."""
        now = self._clock.now()
        async with self._database.user(user_id) as tx:
            memory = await memories.get(tx, user_id, ref)
            parts = (await memory_scores.at(tx, user_id, [memory.id], now))[memory.id]
            use_days = await memories.use_days(tx, user_id)
        return explain(
            ScoreInputs(
                use_days=use_days, use_day_created=memory.use_day_created,
                use_day_accessed=memory.use_day_accessed, access_count=memory.access_count,
                mention_count=memory.mention_count, links=parts.links, entities=parts.entities,
                happens_at=memory.happens_at, expires_at=memory.expires_at,
            ),
            now,
        )  # fmt: skip

    async def graph(self, user_id: UUID, *, around: Ref | None = None, limit: int = 150) -> Graph:
        """A picture of at most `limit` (500) memories: the most important active ones, or those
        nearest to one of them over links. Raises NotFound."""
        most = min(limit, PICTURE)
        async with self._database.user(user_id) as tx:
            if around is None:
                shown = await memories.page(
                    tx, user_id, status="active", order="importance", before=None, limit=most
                )
            else:
                middle = await memories.get(tx, user_id, around)
                ways = (await linking.ways(tx, user_id, [middle.id], depth=linking.DEEPEST))[
                    middle.id
                ]
                ids = [middle.id, *(way.at for way in ways)][:most]
                found = await memories.find(tx, user_id, ids)
                shown = [found[one] for one in ids if one in found]
            ids = [one.id for one in shown]
            links = await memory_links.touching(tx, user_id, ids)
            owned = await entities.of_memories(tx, user_id, ids)
            named = await entities.find(
                tx, user_id, list({one for own in owned.values() for one in own})
            )
        present = set(ids)
        return Graph(
            memories=tuple(shown),
            entities=tuple(named),
            links=tuple(e for e in links if e.from_id in present and e.to_id in present),
            about=tuple((one, entity) for one, own in owned.items() for entity in own),
        )

    # What everybody shares: for the administrator.

    async def add_shared(self, new: NewMemory) -> Stored:
        """Add a memory that every user finds and none can change. Raises as `create` does."""
        return await self.create(SHARED, new, actor="import")

    async def remove_shared(self, ref: Ref) -> None:
        """Remove one for good. Raises NotFound."""
        await self.delete(SHARED, ref, actor="import")

    async def shared(self, *, limit: int = PAGE) -> list[Memory]:
        """The memories that everybody shares, the newest first."""
        return await self.page(SHARED, limit=limit)

    # What a new use-day brings: for the keeper, in a transaction of its own making.

    async def recalculate(self, tx: Tx, user_id: UUID, *, dated: bool = False) -> int:
        """Store every active memory's score as it is now; returns how many changed. See
        forgetting.recalculate."""
        return await forgetting.recalculate(tx, user_id, self._clock.now(), dated=dated)

    async def forget(self, tx: Tx, user_id: UUID, *, limit: int = 500) -> list[UUID]:
        """Archive what has been under the floor for seven use-days; returns which, at most
        `limit`: call again while there are as many."""
        return await forgetting.forget(self._steps, tx, user_id, limit=limit)
