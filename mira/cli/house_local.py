"""The house without a server: the same answers from the database and the key store themselves."""

from __future__ import annotations

import platform
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import msgspec

import mira
from mira.app import Resources, open_resources
from mira.errors import Unavailable
from mira.llm import models
from mira.settings import Settings
from mira.store import keys, operation, outbox
from mira.store.keys import Scope
from mira.web import summary_health
from mira.web.health import Health
from mira.web.models import CreatedKey, Key, Letter, ModelView, Status
from mira.web.services import Check

_CHECK_WITHIN = 5.0


@asynccontextmanager
async def open_local(settings: Settings) -> AsyncIterator[LocalHouse]:
    """Open what is needed, and close it again. Raises StartupRefused or Unavailable."""
    async with open_resources(settings) as resources:
        yield LocalHouse(resources)


class LocalHouse:
    """The house on resources of our own. Nothing is done here but what was asked: what is
    replayed waits for the next server."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._began = resources.clock.monotonic()

    async def keys(self) -> tuple[Key, ...]:
        async with self._resources.database.engine() as tx:
            records = await keys.listed(tx, self._resources.user.id)
        return tuple(Key.of(record) for record in records)

    async def create_key(self, name: str, scope: Scope) -> CreatedKey:
        r = self._resources
        async with r.database.engine() as tx:
            new = await keys.create(
                tx, r.ids, r.user.id, name=name, scope=scope, now=r.clock.now()
            )  # fmt: skip
        return CreatedKey(**msgspec.structs.asdict(new))

    async def revoke_key(self, key_id: UUID) -> None:
        r = self._resources
        async with r.database.engine() as tx:
            await keys.revoke(tx, r.user.id, key_id, r.clock.now())

    async def letters(self, most: int) -> tuple[Letter, ...]:
        async with self._resources.database.engine() as tx:
            records = await operation.dead_letters(tx, user_id=None, before=None, limit=most)
        return tuple(Letter.of(record) for record in records)

    async def replay(self, letter_id: int) -> Letter:
        async with self._resources.database.engine() as tx:
            await operation.dead_letter(tx, letter_id, user_id=None)
            await outbox.replay(tx, letter_id, self._resources.clock.now())
            return Letter.of(await operation.dead_letter(tx, letter_id, user_id=None))

    async def status(self) -> Status:
        r = self._resources
        ready = await Health(self._checks(), r.clock, _CHECK_WITHIN).ready()
        async with r.database.engine() as tx:
            work = await operation.work(tx, r.clock.now())
        summaries = await summary_health.of_user(r.database, r.user.id, r.clock.now())
        return Status(
            status=ready.status,
            version=mira.__version__,
            python=platform.python_version(),
            uptime_seconds=0.0,
            components=ready.components,
            models=await self._models(),
            engine={},
            connections=0,
            work_pending=work.pending,
            work_due=work.due,
            dead_letters=work.dead,
            summaries=summaries,
        )

    async def _models(self) -> tuple[ModelView, ...]:
        r = self._resources
        chosen = await models.build(r.settings, r.secrets.get, r.clock, r.ids)
        try:
            return tuple(
                ModelView(
                    purpose=purpose,
                    model=", ".join(names),
                    note=chosen.notice or "" if purpose == "conversation" else "",
                )
                for purpose, names in chosen.chosen().items()
            )
        finally:
            await chosen.aclose()

    def _checks(self) -> tuple[Check, ...]:
        r = self._resources

        async def database() -> str:
            async with r.database.engine() as tx:
                return f"PostgreSQL {str(await tx.value('show server_version')).split()[0]}"

        async def secrets() -> str:
            return f"{len(await r.secrets.names())} secrets"

        async def cache() -> str:
            if not await r.cache.ping():
                raise Unavailable("The cache does not answer.")
            return "answers"

        return (
            Check("database", database),
            Check("secrets", secrets),
            Check("cache", cache, critical=False),
        )
