"""Where the last render of each section of the prompt is kept: a cache, written after the turn."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from mira.prompt.layout import Prompt
from mira.store import renders
from mira.store.cache import Cache
from mira.store.renders import Render


class Renders:
    """Keeps and shows them. Never raises because the cache is away."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    async def keep(self, user_id: UUID, turn_id: UUID, prompt: Prompt, at: datetime) -> None:
        """What this prompt was made of takes the place of what the last was."""
        made = [
            Render(
                name=one.name, placement=one.placement, text=one.text, tokens=one.tokens,
                turn_id=turn_id, at=at, error=one.error,
            )
            for one in prompt.rendered
        ]  # fmt: skip
        await renders.write(self._cache, user_id, made)

    async def last(self, user_id: UUID) -> list[Render]:
        """In the order of the prompt."""
        return await renders.read(self._cache, user_id)
