"""Which durable message is delivered when.

A row that is due and heads its lane is handed over in this process right after its commit,
without asking the store. What is in flight is a table in memory: a lane is in it or not. A lane
that gets more work while it is in flight is flagged, and the store is asked once it is free.
Beside that the store is asked at the next due time and, as a safety net, every half minute.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from anyio import CancelScope
from msgspec.structs import replace

from mira.errors import MiraError, SystemStopped

from .backend import Bell
from .durable import DurableRow, Lane, Outbox, Written
from .envelope import Envelope
from .observer import report
from .stats import DurableStats
from .ticker import Alarm

if TYPE_CHECKING:
    from .cell import Cell
    from .jobs import RunningJob
    from .system import ActorSystem


class Delivery(Envelope):
    """A durable message on its way to its actor."""

    __slots__ = ("_ended", "durable", "marked", "once_more", "replaced", "taken")

    answerable = True

    def __init__(self, cell: Cell, row: DurableRow) -> None:
        super().__init__(cell, row.message, cell.system.carried_at_start)
        self.durable: DurableRow = row
        self.taken: RunningJob[Any] | None = None
        #: Marked done by the handler, in a transaction that has committed.
        self.marked = False
        #: There was a newer version when it was marked.
        self.replaced = False
        self.once_more = False
        self._ended = False

    async def done(self, tx: object) -> bool:
        outbox = self.cell.system.dispatcher.outbox
        self.replaced = not await outbox.done(self.durable, tx)
        outbox.after_commit(tx, self.mark_done)
        return not self.replaced

    def hand_over(self, job: RunningJob[Any]) -> None:
        self.taken = job

    def mark_done(self) -> None:
        self.marked = True

    def again(self) -> None:
        self.once_more = True

    def answer(self, value: object) -> None:
        self._end(None)

    def fail(self, error: Exception) -> None:
        self._end(error)

    def cut_off(self) -> None:
        self._end(SystemStopped("the handler was cancelled"))

    def _end(self, error: Exception | None) -> None:
        if self._ended:
            return
        if error is None and self.once_more and not self.marked:
            if not self.cell.system.dispatcher.closed:
                self.once_more, self.taken = False, None
                self.cell.put_beyond(self)
                return
            error = SystemStopped("the engine is stopping")
        self._ended = True
        self.cell.system.dispatcher.ended(self, error)


class Dispatcher:
    """Delivers durable messages, in order within a lane, one at a time in each."""

    def __init__(self, system: ActorSystem, outbox: Outbox, bell: Bell) -> None:
        self.outbox = outbox
        self.stats = DurableStats()
        self._system = system
        self._settings = system.settings
        self._bell = bell
        #: The lanes in flight; True if there is more to look for in them.
        self._lanes: dict[Lane, bool] = {}
        #: Lanes that were in flight at some time during the present poll.
        self._during_poll: set[Lane] | None = None
        #: Something due had to wait for want of room.
        self._held_back = False
        #: How often a row has met an outage in a row; attempts do not count these.
        self._outages: dict[int, int] = {}
        self._timer: tuple[int, Alarm, datetime] | None = None
        self._closed = False
        self._scope = CancelScope()

    # Taking in.

    def written(self, written: Written) -> None:
        """A row was written, and its transaction has committed."""
        row = written.row
        if row.due_at > self._system.clock.now():
            self._look_at(row.due_at)
        elif written.head:
            self.offer(row)
        else:
            self._look_in((row.to, row.lane))

    def look(self) -> None:
        """Ask the store now: work was added by somebody else."""
        self._bell.ring()

    def offer(self, row: DurableRow) -> None:
        """Deliver a committed row that is due and heads its lane."""
        lane = (row.to, row.lane)
        if self._closed:
            return
        if lane in self._lanes:
            self._lanes[lane] = True
        elif len(self._lanes) >= self._settings.durable_in_flight:
            self._held_back = True
        else:
            self._deliver(lane, row, more=False)

    def _look_in(self, lane: Lane) -> None:
        if lane in self._lanes:
            self._lanes[lane] = True
        else:
            # What stood before it may have ended while its transaction was open.
            self._bell.ring()

    def _deliver(self, lane: Lane, row: DurableRow, *, more: bool) -> None:
        self._lanes[lane] = more
        if self._during_poll is not None:
            self._during_poll.add(lane)
        self.stats.delivered += 1
        try:
            cell = self._system.cell(row.to)
        except MiraError as error:
            self._settle(row, error)
            return
        delivery = Delivery(cell, row)
        if cell.resting:
            delivery.fail(cell.resting_error())
        else:
            cell.put_beyond(delivery)

    def snapshot(self) -> DurableStats:
        return replace(self.stats, in_flight=len(self._lanes))

    # Ending.

    def ended(self, delivery: Delivery, error: Exception | None) -> None:
        """A handler has ended, and will not be given this row again unless it is still undone."""
        row = delivery.durable
        if delivery.marked:
            # Even if it failed afterwards: its effect is there.
            self.stats.done += 1
            self._outages.pop(row.id, None)
            if delivery.replaced:
                self._flag(row)
            self._release(row)
        else:
            self._settle(row, error)

    def _settle(self, row: DurableRow, error: Exception | None) -> None:
        if isinstance(error, SystemStopped):
            self._release(row)
        else:
            self._system.workers.spawn(self._write_end, row, error)

    async def _write_end(self, row: DurableRow, error: Exception | None) -> None:
        try:
            if error is not None:
                await self._failed(row, error)
            elif await self.outbox.done(row):
                self.stats.done += 1
                self._outages.pop(row.id, None)
            else:
                self._flag(row)
        except Exception as trouble:
            # The row is as it was. Its lane stays taken for a while, or it would spin.
            self._outbox_failed(trouble)
            self._flag(row)
            self._system.ticker.after(1.0, Alarm(partial(self._release, row)))
        else:
            self._release(row)

    async def _failed(self, row: DurableRow, error: Exception) -> None:
        settings = self._settings
        outage = isinstance(error, MiraError) and error.outage
        # The words of a bug may be what somebody wrote; those of ours are meant to be read.
        text = (
            f"{type(error).__name__}: {error}"
            if isinstance(error, MiraError)
            else type(error).__name__
        )
        if outage:
            tries = self._outages.get(row.id, 0)
            self._outages[row.id] = tries + 1
            longest = settings.outage_back_off
        elif row.attempts + 1 >= settings.attempts:
            await self.outbox.bury(row, text)
            self._outages.pop(row.id, None)
            self.stats.buried += 1
            self._flag(row)
            report(self._system.observer.buried, row, error)
            return
        else:
            tries = row.attempts
            longest = settings.longest_back_off
        wait = min(settings.first_back_off * 2.0 ** min(tries, 60), longest)
        wait = max(wait * self._system.ids.uniform(0.75, 1.0), _asked_for(error))
        due_at = self._system.clock.now() + timedelta(seconds=wait)
        await self.outbox.back_off(row, due_at, text, attempt=not outage)
        self.stats.backed_off += 1
        report(self._system.observer.backed_off, row, due_at, error)
        self._look_at(due_at)

    def _flag(self, row: DurableRow) -> None:
        self._lanes[row.to, row.lane] = True

    def _release(self, row: DurableRow) -> None:
        if self._lanes.pop((row.to, row.lane)) or self._held_back:
            self._bell.ring()

    # Looking for more.

    async def run(self) -> None:
        """Ask the store when there is reason to, until closed."""
        failures = 0
        with self._scope:
            while True:
                try:
                    await self._poll()
                    failures = 0
                except Exception as error:
                    self._outbox_failed(error)
                    failures += 1
                every = self._settings.poll_every
                await self._wait(
                    min(2.0 ** min(failures, 60), every) if failures else every, failures > 0
                )

    async def _wait(self, seconds: float, stubborn: bool) -> None:
        """Wait for the bell, at most so long; a stubborn wait is not cut short by it."""
        alarm = Alarm(self._bell.ring)
        end = self._system.monotonic() + seconds
        bucket = self._system.ticker.after(seconds, alarm)
        await self._bell.wait()
        while stubborn and self._system.monotonic() < end:
            await self._bell.wait()
        self._system.ticker.discard(bucket, alarm)

    async def _poll(self) -> None:
        self.stats.polls += 1
        now = self._system.clock.now()
        free = self._settings.durable_in_flight - len(self._lanes)
        self._held_back = free <= 0
        if free > 0:
            await self._deliver_due(now, free)
        next_due = await self.outbox.next_due(now)
        if next_due is not None:
            self._look_at(next_due)

    async def _deliver_due(self, now: datetime, free: int) -> None:
        touched: set[Lane] = set()
        self._during_poll = touched
        try:
            rows = await self.outbox.due(now, limit=free, busy=tuple(self._lanes))
        finally:
            self._during_poll = None
        for row in rows:
            lane = (row.to, row.lane)
            if lane in touched:
                # It was delivered while the store was answering, and the answer is stale.
                self._look_in(lane)
            else:
                # What stands behind it is not known.
                self._deliver(lane, row, more=True)
        if len(rows) >= free:
            self._held_back = True
            if len(self._lanes) < self._settings.durable_in_flight:
                self._bell.ring()

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Deliver nothing more; what is in flight may end."""
        self._closed = True
        self._scope.cancel()

    def _outbox_failed(self, error: Exception) -> None:
        report(self._system.observer.outbox_failed, error)

    def _look_at(self, due_at: datetime) -> None:
        """See to it that the store is asked at `due_at`, or before."""
        wait = max(0.0, (due_at - self._system.clock.now()).total_seconds())
        if wait >= self._settings.poll_every:
            return
        if self._timer is not None:
            bucket, alarm, planned = self._timer
            if planned <= due_at:
                return
            self._system.ticker.discard(bucket, alarm)
        alarm = Alarm(self._timer_rings)
        self._timer = (self._system.ticker.after(wait, alarm), alarm, due_at)

    def _timer_rings(self) -> None:
        self._timer = None
        self._bell.ring()


def _asked_for(error: Exception) -> float:
    """Seconds that an error itself asks to wait."""
    seconds = getattr(error, "retry_after", None)
    return seconds if isinstance(seconds, int | float) else 0.0
