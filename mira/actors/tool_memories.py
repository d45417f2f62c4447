"""The user's memories as a turn's tools see them. See mira.toolkit.Memories."""

from __future__ import annotations

from datetime import datetime
from typing import cast, get_args
from uuid import UUID

from mira.errors import ValidationFailed
from mira.memory.memories import Memories
from mira.memory.model import LinkedMemory, LinkType, Memory, NewMemory
from mira.memory.query import RecallQuery
from mira.memory.search import MemoryHit
from mira.toolkit import MemoryView


class TurnMemories:
    """Every change names the turn, and the model as who made it."""

    def __init__(self, memories: Memories, user_id: UUID, turn_id: UUID) -> None:
        self._memories = memories
        self._user_id = user_id
        self._turn_id = turn_id

    async def search(self, text: str, limit: int) -> tuple[MemoryView, ...]:
        ranking = await self._memories.search(
            self._user_id,
            RecallQuery(phrases=(text,), limit=limit),
            turn_id=self._turn_id,
            purpose="memory_tool",
        )
        return tuple(_found(hit) for hit in ranking.hits)

    async def create(
        self, text: str, *, happens_at: datetime | None, expires_at: datetime | None
    ) -> tuple[MemoryView, str]:
        new = NewMemory(text=text, source="tool", happens_at=happens_at, expires_at=expires_at)
        stored = await self._memories.create(
            self._user_id, new, actor="model", turn_id=self._turn_id
        )
        return _view(stored.memory), stored.outcome

    async def link(self, from_id: str, to_id: str, kind: str, reason: str) -> None:
        if kind not in get_args(LinkType):
            raise ValidationFailed(f"There is no kind of link called {kind}.")
        await self._memories.link(
            self._user_id, from_id, to_id, cast(LinkType, kind), reason=reason, confidence=1.0,
            actor="model", turn_id=self._turn_id,
        )  # fmt: skip

    async def annotate(self, memory_id: str, text: str) -> None:
        await self._memories.annotate(
            self._user_id, memory_id, text, author="model", turn_id=self._turn_id
        )

    async def touch(self, memory_id: str) -> None:
        await self._memories.touch(self._user_id, memory_id, actor="model", turn_id=self._turn_id)

    async def archive(self, memory_id: str) -> None:
        await self._memories.archive(self._user_id, memory_id, actor="model", turn_id=self._turn_id)

    async def restore(self, memory_id: str) -> None:
        await self._memories.restore(self._user_id, memory_id, actor="model", turn_id=self._turn_id)

    async def merge(self, ids: tuple[str, ...], text: str) -> MemoryView:
        return _view(
            await self._memories.merge(
                self._user_id, ids, text, actor="model", turn_id=self._turn_id
            )
        )


def _found(hit: MemoryHit) -> MemoryView:
    return _view(hit.memory, tuple(_line(linked) for linked in hit.linked))


def _view(memory: Memory, linked: tuple[str, ...] = ()) -> MemoryView:
    return MemoryView(
        id=memory.short_id,
        text=_flat(memory.text),
        importance=memory.importance,
        status=memory.status,
        created_at=memory.created_at,
        happens_at=memory.happens_at,
        superseded=memory.superseded_by is not None,
        linked=linked,
    )


def _line(linked: LinkedMemory) -> str:
    arrow = "→" if linked.direction == "out" else "←"
    return f"{arrow} {linked.link.type} {linked.memory.short_id} {_flat(linked.memory.text)}"


def _flat(text: str) -> str:
    """On one line: else a memory could pass for several."""
    return " ".join(text.split())
