"""The engine as the rest of the house sees it."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar, copy_context
from datetime import datetime
from functools import partial
from typing import Any

import msgspec
from anyio import CancelScope, create_task_group

from mira.clock import Clock
from mira.errors import (
    DeadlockError,
    MailboxFull,
    NotFound,
    SystemStopped,
)
from mira.ids import Ids
from mira.messages.base import Address, Message

from .actor import Actor
from .ask import Ask, ParkedTell
from .backend import Bell, current_backend
from .cell import Cell, current_cell
from .dispatcher import Dispatcher
from .durable import DurableMessage, Outbox, Written
from .envelope import Envelope
from .jobs import Jobs
from .observer import Observer, report
from .retirement import Retirement
from .routes import Routes
from .stats import DurableStats, KindStats, Stats
from .supervisor import Intensity
from .ticker import Ticker
from .workers import Workers


class Kind(msgspec.Struct, frozen=True):
    """A kind of actor.

    `rank` is 1 or more; an ask only goes to a higher rank. `capacity` bounds the mailbox.
    After `idle` seconds without a message the instance is put to rest.
    """

    factory: Callable[[Address], Actor]
    rank: int
    capacity: int = 256
    idle: float = 1800.0
    intensity: Intensity = Intensity()


class EngineSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of the engine. Times are in seconds."""

    #: How long a tell waits for room in a mailbox.
    tell_timeout: float = 10.0
    #: What each handler of an event has.
    barrier_timeout: float = 0.25
    passivate_timeout: float = 5.0
    #: How long running handlers and jobs may go on at stop; then how long they may clean up, and
    #: once more as long for all actors together to be passivated.
    stop_grace: float = 20.0
    stop_cleanup: float = 6.0
    #: How many jobs run at a time, by kind and where a kind is not named; and wait, of each kind.
    jobs: Mapping[str, int] = {}
    jobs_default: int = 8
    jobs_waiting: int = 10_000
    #: Durable messages: how many at a time, how often the store is asked without a reason,
    #: failures until the dead letters, and the growing pauses between.
    durable_in_flight: int = 256
    poll_every: float = 30.0
    attempts: int = 8
    first_back_off: float = 1.0
    longest_back_off: float = 600.0
    outage_back_off: float = 60.0


class ActorSystem:
    """Actors by address: send to one, and it is there.

    Use it inside `async with system.running()`, on one event loop, from its thread. The methods
    below are for the outside, which has rank 0 and may ask every kind; handlers use their
    Context. Called from inside a handler they know it, and the same rules hold.

    `carried` is a context variable (with a default) whose value goes along with every message,
    from the sender to the handler and its jobs. `observer` hears of what nobody waits for.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        ids: Ids,
        kinds: Mapping[str, Kind],
        routes: Routes | None = None,
        outbox: Outbox | None = None,
        observer: Observer | None = None,
        settings: EngineSettings | None = None,
        carried: ContextVar[Any] | None = None,
    ) -> None:
        if any(kind.rank < 1 or kind.capacity < 1 for kind in kinds.values()):
            raise ValueError("rank and capacity of a kind are 1 or more")
        self.clock = clock
        self.monotonic = clock.monotonic
        self.ids = ids
        self.routes = routes or Routes()
        self.observer = observer or Observer()
        self.settings = settings or EngineSettings()
        self.carrier: ContextVar[Any] = carried or ContextVar("carried", default=None)
        self.carried_at_start: object = None
        self.jobs = Jobs(self)
        self.retirement = Retirement(self)
        self._kinds = dict(kinds)
        self._stats = {name: KindStats() for name in kinds}
        self._cells: dict[Address, Cell] = {}
        self._outbox = outbox
        self._open = False
        self._stopped = False
        self._host: CancelScope | None = None
        self._crash: Exception | None = None
        self._grace: CancelScope | None = None
        self._hurried = False

    # Sending.

    async def tell(self, to: Address, message: Message) -> None:
        """See Context.tell."""
        cell = self._cells.get(to)
        if cell is None or not self._open:
            cell = self._receiver(to)
        carried = self.carrier.get()
        if cell.put(Envelope(cell, message, carried)):
            return
        if current_cell.get() is cell:
            raise MailboxFull(f"{to} would wait for itself")
        room = self.backend.waiter()
        parked = ParkedTell(cell, message, carried, room)
        parked.bucket = self.ticker.after(self.settings.tell_timeout, parked)
        cell.park(parked)
        try:
            await room
        finally:
            parked.left()

    def tell_nowait(self, to: Address, message: Message) -> None:
        """See Context.tell_nowait."""
        cell = self._receiver(to)
        if not cell.put(Envelope(cell, message, self.carrier.get())):
            raise MailboxFull(f"the mailbox of {to} is full")

    def ask(self, to: Address, message: Message, *, timeout: float) -> Coroutine[Any, Any, object]:
        """See Context.ask."""
        return self.ask_from(None, to, message, timeout)

    async def ask_from(
        self, envelope: Envelope | None, to: Address, message: Message, timeout: float
    ) -> object:
        """Ask in the handler of `envelope`, or of whatever cell this runs in, or from outside."""
        cell = self._cells.get(to)
        if cell is None or not self._open:
            cell = self._receiver(to)
        chain: tuple[Address, ...] = ()
        if envelope is not None:
            chain = _chain(envelope.cell, envelope, cell)
        elif (asker := current_cell.get()) is not None:
            chain = _chain(asker, asker.running, cell)
        if cell.resting:
            raise cell.resting_error()
        now = self.monotonic()
        reply = self.backend.waiter()
        ask = Ask(cell, message, self.carrier.get(), reply, chain, now)
        ask.bucket = self.ticker.add(now + timeout, timeout, ask)
        if not cell.put(ask):
            cell.park(ask)
        try:
            return await reply
        finally:
            if ask.bucket >= 0:
                ask.left()

    def control(self, to: Address, message: Message) -> bool:
        """Hand a message to a live actor past its mailbox, at once. False if none is live."""
        cell = self._cells.get(to)
        if cell is None or cell.actor is None:
            return False
        try:
            cell.actor.control(message)
        except Exception as error:
            report(self.observer.actor_failed, to, message, error)
        return True

    async def tell_durable(
        self,
        tx: object,
        to: Address,
        message: Message,
        *,
        at: datetime | None = None,
        lane: str,
        key: str | None = None,
    ) -> None:
        """See Context.tell_durable."""
        await self.write_durable(
            tx, (DurableMessage(to=to, message=message, at=at, lane=lane, key=key),)
        )

    async def write_durable(self, tx: object, messages: Sequence[DurableMessage]) -> None:
        """Write several durable messages at once, in order."""
        if not messages:
            return
        outbox = self.dispatcher.outbox
        for written in await outbox.write(tx, messages):
            outbox.after_commit(tx, partial(self.dispatcher.written, written))

    def durable_written(self, written: Written) -> None:
        """A durable message was written by other means, and its transaction has committed."""
        self.dispatcher.written(written)

    def look_for_durable(self) -> None:
        """Durable work was added outside the engine: ask the store for it now."""
        self.dispatcher.look()

    # Looking in.

    def stats(self) -> Stats:
        """Everything counted so far."""
        kinds = {name: copy.deepcopy(stats) for name, stats in self._stats.items()}
        for address in self._cells:
            kinds[address.kind].active += 1
        return Stats(
            kinds=kinds,
            jobs=copy.deepcopy(self.jobs.stats),
            durable=self.dispatcher.snapshot() if self._outbox is not None else DurableStats(),
        )

    # Running.

    @asynccontextmanager
    async def running(self) -> AsyncIterator[ActorSystem]:
        """Run the engine while the block runs; leaving it drains and stops.

        At stop nothing new is taken from outside. What waits in mailboxes, runs or is a job may
        go on for `stop_grace` seconds (not at all if the block was cancelled or failed); then
        every waiting ask is answered SystemStopped, handlers and jobs are cancelled, and every
        actor is passivated. A bug of the engine itself cancels the block and is raised here.
        """
        self._start()
        graceful = False
        try:
            with CancelScope() as self._host:
                yield self
            graceful = self._crash is None
        finally:
            with CancelScope(shield=True):
                await self._stop(self.settings.stop_grace if graceful else 0.0)
        if self._crash is not None:
            raise self._crash

    def _start(self) -> None:
        if self._open or self._stopped:
            raise RuntimeError("an ActorSystem runs once")
        self.carried_at_start = self.carrier.get()
        self.backend = current_backend(copy_context())
        self.ticker = Ticker(self.clock, self.backend)
        self.workers = Workers(self.backend, self._crashed)
        self._loops = Workers(self.backend, self._crashed)
        self._loops.spawn(self.ticker.run)
        if self._outbox is not None:
            self.dispatcher = Dispatcher(self, self._outbox, Bell(self.backend))
            self._loops.spawn(self.dispatcher.run)
        self._open = True

    def hurry(self) -> None:
        """Do without the grace at stop, or with what is left of it."""
        self._hurried = True
        if self._grace is not None:
            self._grace.cancel()

    def _crashed(self, error: Exception) -> None:
        self._crash = self._crash or error
        if self._host is not None:
            self._host.cancel()

    async def _stop(self, grace: float) -> None:
        self._open = False
        if self._outbox is not None:
            self.dispatcher.close()
        if grace > 0 and not self._hurried:
            with self.ticker.limit(grace) as self._grace:
                await self.workers.quiet()
            self._grace = None
        self._stopped = True
        if self.workers.busy:
            report(self.observer.stop_overran, self.workers.busy)
        self.jobs.cancel_all()
        for cell in self._cells.values():
            cell.abort()
        with self.ticker.limit(self.settings.stop_cleanup):
            await self.workers.quiet()
        with self.ticker.limit(self.settings.stop_cleanup):
            await self._passivate_all()
            await self.workers.close()
        self._cells.clear()
        self.ticker.close()
        await self._loops.quiet()

    async def _passivate_all(self) -> None:
        async def passivate() -> None:
            for cell in cells:
                await self.retirement.passivate(cell)

        cells = iter([cell for cell in self._cells.values() if cell.actor is not None])
        async with create_task_group() as group:
            for _ in range(64):
                group.start_soon(passivate)

    # For the other parts of the engine.

    def cell(self, address: Address) -> Cell:
        """The cell of an address, made if it is not there. Raises NotFound for an unknown kind."""
        cell = self._cells.get(address)
        if cell is None:
            kind = self._kinds.get(address.kind)
            if kind is None:
                raise NotFound(f"there is no kind of actor named {address.kind}")
            cell = Cell(self, address, kind, self._stats[address.kind])
            self._cells[address] = cell
            cell.check_later()
        return cell

    def forget(self, cell: Cell) -> None:
        """Drop an idle cell."""
        self._cells.pop(cell.address, None)

    def _receiver(self, to: Address) -> Cell:
        if not self._open and (self._stopped or current_cell.get() is None):
            raise SystemStopped("the engine is not running")
        return self.cell(to)


def _chain(asker: Cell, envelope: Envelope | None, asked: Cell) -> tuple[Address, ...]:
    """Who waits when `asker`, handling `envelope`, asks. Raises DeadlockError if it must not."""
    if asked.kind.rank <= asker.kind.rank:
        raise DeadlockError(f"{asker.address} must not ask {asked.address}: it does not rank below")
    chain = envelope.chain if envelope is not None else ()
    if asked.address in chain:
        raise DeadlockError(f"{asked.address} is waiting for this answer")
    return (*chain, asker.address)
