"""A history of a test: messages as the house leaves them behind, taken into the search."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from bench.recall_data import Conversation, Message
from bench.recall_store import write_all
from mira.clock import SystemClock
from mira.errors import Unavailable
from mira.ids import SystemIds
from mira.memory.encoding import Encoders
from mira.memory.indexing import HistoryIndex
from mira.memory.passages import PassageRanking, PassageSearch
from mira.memory.query import RecallQuery
from mira.messages.content import Role
from mira.store.database import Database
from mira.store.users import User

BEGAN = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


class Chat:
    """What a user (Ada) and the assistant (Ben) have said, and the search over it.

    A line that begins with "- " is Ben's. Each session begins a day after the one before.
    """

    def __init__(self, database: Database, encoders: Encoders, user: User) -> None:
        self.database, self.encoders, self.user = database, encoders, user
        self.search = PassageSearch(database, encoders)
        self._said: list[str] = []

    async def say(self, *sessions: Sequence[str]) -> None:
        """Say all this, once, and take it in (without vectors where there is no encoder)."""
        made = []
        for day, lines in enumerate(sessions):
            at = BEGAN + timedelta(days=day)
            made.append(tuple(
                Message(
                    str(number), Role.ASSISTANT if line.startswith("- ") else Role.USER,
                    line.removeprefix("- "), at + timedelta(minutes=number),
                )
                for number, line in enumerate(lines)
            ))  # fmt: skip
            self._said += [line.removeprefix("- ") for line in lines]
        conversation = Conversation("test", "Ada", "Ben", tuple(made), ())
        async with self.database.user(self.user.id) as tx:
            await write_all(tx, SystemIds(), self.user.id, conversation)
        index = HistoryIndex(self.database, self.encoders, SystemClock())
        try:
            while await index.step(self.user.id):
                pass
        except Unavailable:
            pass

    async def found(self, *phrases: str, **fields: object) -> PassageRanking:
        query = RecallQuery(phrases=phrases, **fields)  # type: ignore[arg-type]
        return await self.search.search(self.user.id, query)

    async def lines(self, *phrases: str, **fields: object) -> list[str]:
        """What is found, best first, in the words that were said."""
        return [self._said[hit.turn_seq - 1] for hit in (await self.found(*phrases, **fields)).hits]
