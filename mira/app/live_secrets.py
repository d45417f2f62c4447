"""The key store as the surfaces see it: a provider's key counts from the moment it is set."""

from __future__ import annotations

from mira.llm.models import Models
from mira.secrets import Secrets


class LiveSecrets:
    """Writes to the key store, and has the models chosen anew after each change."""

    def __init__(self, secrets: Secrets, models: Models) -> None:
        self._secrets = secrets
        self._models = models

    async def names(self) -> tuple[str, ...]:
        return tuple(await self._secrets.names())

    async def set(self, name: str, value: str) -> None:
        await self._secrets.set(name, value)
        await self._models.refresh()

    async def delete(self, name: str) -> bool:
        """False if there was none."""
        gone = await self._secrets.delete(name)
        await self._models.refresh()
        return gone
