"""Recall over real memories, a real index of the history, and the real embedding model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from uuid import UUID

from mira.actors.recall import Recall
from mira.actors.recall_searches import Searches
from mira.actors.recalled import Recalled, Wanted
from mira.clock import SystemClock
from mira.ids import SystemIds
from mira.memory.indexing import HistoryIndex
from mira.memory.passages import PassageSearch
from mira.memory.recogniser import Recogniser
from mira.messages.subcortex import Considered, InContext
from mira.store import history, traces
from mira.store.traces import Trace
from tests.support.memory import Remembering
from tests.support.story import tell_story

#: Seconds for each part: tests share their machine.
PATIENCE = 60.0


def says(considered: Considered) -> Callable[[tuple[InContext, ...]], Awaitable[Considered]]:
    """A Subcortex that says this, whatever it is asked."""

    async def consider(_offered: tuple[InContext, ...]) -> Considered:
        return considered

    return consider


class Recalling:
    """What tests of recall say all the time."""

    def __init__(self, here: Remembering, recogniser: Recogniser | None = None) -> None:
        self.here = here
        self.searches = Searches(
            database=here.database,
            memories=here.memories,
            passages=PassageSearch(here.database, here.encoders),
        )
        self.recall = Recall(
            self.searches, recogniser, SystemClock(), SystemIds(), longest=PATIENCE
        )

    async def index(self, user: UUID) -> None:
        """Take in all that was said."""
        index = HistoryIndex(self.here.database, self.here.encoders, SystemClock())
        while await index.step(user):
            pass

    async def told(self, user: UUID, *said: str, indexed: bool = True) -> list[UUID]:
        """The user and the assistant speak in turn; the ids of the messages, in order."""
        segment = await tell_story(self.here.database, user, *said, state="active")
        async with self.here.database.user(user) as tx:
            rows = await tx.fetch(
                "select m.id from messages m join turns t on t.id = m.turn_id "
                "where t.segment_id = $1 order by m.turn_seq, m.position",
                segment,
            )
            await tx.execute(
                "update segments set state = 'collapsed', collapsed_at = opened_at where id = $1",
                segment,
            )
        if indexed:
            await self.index(user)
        return [row["id"] for row in rows]

    async def turn(
        self, user: UUID, words: str, considered: Considered | None = None, *,
        surfaced: tuple[UUID, ...] = (), replies: tuple[UUID, ...] = (),
        held: frozenset[UUID] = frozenset(), turn_id: UUID | None = None,
    ) -> Recalled:  # fmt: skip
        """What a turn recalls; `considered` is what the Subcortex says, if there is one."""
        wanted = Wanted(
            user_id=user, turn_id=turn_id or await self.here.turn(user), words=words,
            surfaced=surfaced, replies=replies, held=held,
        )  # fmt: skip
        return await self.recall.for_turn(wanted, says(considered) if considered else None)

    async def traces(self, user: UUID, turn_id: UUID) -> dict[str, Trace]:
        """The traces of a turn by their purpose."""
        async with self.here.database.user(user) as tx:
            return {trace.purpose: trace for trace in await traces.of_turn(tx, user, turn_id)}

    async def words(self, user: UUID, message_id: UUID) -> str:
        async with self.here.database.user(user) as tx:
            [one] = await history.of_ids(tx, user, [message_id])
        return one.blocks[0].text  # type: ignore[union-attr]


def texts(recalled: Recalled) -> list[str]:
    return [one.text for one in recalled.memories]
