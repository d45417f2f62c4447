"""Stores the facts that come with a conversation as memories, instead of its messages."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from bench.memory_house import House
from bench.recall_data import Conversation
from mira.clock import SystemClock
from mira.ids import SystemIds
from mira.memory.model import NewMemory
from mira.store.users import ensure_user


@dataclass(frozen=True)
class Remembered:
    """A conversation whose facts are a user's memories, and the messages each is known from."""

    conversation: Conversation
    user_id: UUID
    evidence: dict[UUID, tuple[str, ...]]


async def remember(house: House, conversation: Conversation) -> Remembered:
    """Store the facts. One that is there already adds its evidence to that memory's."""
    ids = SystemIds()
    user = await ensure_user(
        house.database, ids.new(), f"bench-{ids.new().hex}", "UTC", SystemClock().now()
    )
    evidence: dict[UUID, tuple[str, ...]] = {}
    for fact in conversation.facts:
        if len(fact.text) < 10:
            continue
        new = NewMemory(text=fact.text, source="import", valid_from=fact.at)
        stored = await house.memories.create(user.id, new, actor="import")
        known = evidence.get(stored.memory.id, ())
        evidence[stored.memory.id] = tuple(dict.fromkeys((*known, *fact.evidence)))
    return Remembered(conversation, user.id, evidence)
