"""A house in which chats are replayed: what runs, when all is done, and what has gone wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

import anyio

from bench.provider_double import ProviderDouble
from bench.replay_answers import Rules
from bench.replay_clock import ReplayClock
from mira.actors.conversations import Conversations
from mira.actors.runtime.durable import DurableRow
from mira.actors.runtime.observer import Observer
from mira.actors.runtime.system import ActorSystem
from mira.errors import MiraError
from mira.ids import SystemIds
from mira.messages.base import Address, Event, Message
from mira.settings import Settings
from mira.store.database import Database

#: Seconds until the first look whether all is done, and most between two of them.
SOON, LOOK = 0.02, 0.25


class Failures(Observer):
    """What the engine reports as gone wrong, by name and place."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def actor_failed(self, address: Address, message: Message | None, error: Exception) -> None:
        self._note("actor_failed", address.kind, error)

    def message_rejected(self, address: Address, message: Message, error: MiraError) -> None:
        self._note("message_rejected", type(message).__name__, error)

    def handler_failed(self, event: Event, handler: str, error: Exception) -> None:
        self._note("handler_failed", handler, error)

    def job_failed(self, address: Address, kind: str, error: Exception) -> None:
        self._note("job_failed", kind, error)

    def backed_off(self, row: DurableRow, due_at: datetime, error: Exception) -> None:
        self._note("backed_off", type(row.message).__name__, error)

    def buried(self, row: DurableRow, error: Exception) -> None:
        self._note("buried", type(row.message).__name__, error)

    def outbox_failed(self, error: Exception) -> None:
        self._note("outbox_failed", "outbox", error)

    def _note(self, what: str, where: str, error: Exception) -> None:
        self.seen[f"{what}: {where}: {type(error).__name__}"] += 1


@dataclass
class House:
    """A running house."""

    settings: Settings
    clock: ReplayClock
    database: Database
    system: ActorSystem
    conversations: Conversations
    double: ProviderDouble
    rules: Rules
    failures: Failures
    patience: float
    ids: SystemIds

    async def settle(self, until: datetime | None = None) -> None:
        """Have everything done that is due by now, and then, going forward from one due moment to
        the next, what falls due before `until`; the clock then stands there.

        Raises TimeoutError when something is not done after `patience`.
        """
        await self._quiet()
        while until is not None:
            async with self.database.engine() as tx:
                due = await tx.value("select min(due_at) from outbox where due_at <= $1", until)
            if due is None:
                break
            self.clock.go_to(due)
            await self._quiet()
        if until is not None:
            self.clock.go_to(until)

    async def _quiet(self) -> None:
        pause = SOON
        with anyio.fail_after(self.patience):
            while await self._busy():
                self.system.look_for_durable()
                await self.clock.sleep(pause)
                pause = min(LOOK, pause * 1.5)

    async def _busy(self) -> bool:
        if self.system.workers.busy or self.system.stats().durable.in_flight:
            return True
        async with self.database.engine() as tx:
            due: bool = await tx.value(
                "select exists (select from outbox where due_at <= $1)", self.clock.now()
            )
        return due
