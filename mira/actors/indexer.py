"""Takes what was said into the search, after the turn and beside the conversation."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from mira.actors.runtime.actor import Actor, Context
from mira.messages.base import Address, Message
from mira.messages.indexing import IndexHistory

KIND = "indexer"
#: Lane and key of an indexer's wake-up (as written by settle_turn).
INDEX_LANE = "history"


class HistoryIndex(Protocol):
    """The search's side of the history. A step takes in a bounded number of turns."""

    async def step(self, user_id: UUID) -> bool:
        """Take in the next turns that have ended, in one transaction. False if none was left.

        Raises Unavailable while something that it needs is away: what it did before stands.
        """
        ...


def indexer_of(user_id: UUID) -> Address:
    """The address of a user's indexer."""
    return Address(KIND, str(user_id))


class Indexer(Actor):
    """One user's indexer. It keeps nothing: how far the history is taken in stands in Postgres."""

    __slots__ = ("_index", "_user_id")

    def __init__(self, index: HistoryIndex, user_id: UUID) -> None:
        self._index = index
        self._user_id = user_id

    async def receive(self, message: Message, ctx: Context) -> object:
        if not isinstance(message, IndexHistory):
            raise NotImplementedError(type(message).__name__)
        # A turn that ends meanwhile raises the message's version: it is delivered once more.
        ctx.job("index", self._catch_up, take_reply=True)
        return None

    async def _catch_up(self) -> None:
        while await self._index.step(self._user_id):
            pass
