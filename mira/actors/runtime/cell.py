"""One address: its mailbox, its instance, its failures."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

from anyio import CancelScope

from mira.errors import ActorFailed, ActorQuarantined, MiraError, SystemStopped
from mira.messages.base import Address

from .actor import Actor
from .mailbox import Mailbox
from .observer import report
from .stats import KindStats
from .supervisor import Record
from .ticker import Alarm

if TYPE_CHECKING:
    from .envelope import Envelope
    from .system import ActorSystem, Kind

#: Messages that one cell may handle before others get a turn.
BATCH = 128

#: How a handler ended that has not returned a value.
_CUT_OFF, _FAILED = object(), object()

#: The cell whose code is running, in its handlers and whatever they start.
current_cell: ContextVar[Cell | None] = ContextVar("current_cell", default=None)


class Cell(Mailbox):
    """The place where an actor lives: everything of an address that is in memory.

    It is awake while a worker has it or is being given it, and while the address rests. One
    worker at a time drains a cell: that is what makes an actor handle one message at a time.
    """

    __slots__ = (
        "actor",
        "address",
        "cancelled",
        "jobs",
        "kind",
        "last",
        "record",
        "resting",
        "running",
        "scope",
        "stats",
        "system",
    )

    def __init__(self, system: ActorSystem, address: Address, kind: Kind, stats: KindStats) -> None:
        super().__init__(kind.capacity)
        self.system = system
        self.address = address
        self.kind = kind
        self.stats = stats
        self.actor: Actor | None = None
        #: The message whose handler is running, and the scope that it runs in.
        self.running: Envelope | None = None
        self.scope: CancelScope | None = None
        self.cancelled = False
        self.record: Record | None = None
        self.resting = False
        #: Jobs of this actor that have not ended; it is not put to rest before.
        self.jobs = 0
        #: When it was last at work.
        self.last = system.monotonic()

    # Taking messages in.

    def wake(self) -> None:
        self.awake = True
        self.system.workers.dispatch(self)

    def withdraw(self, envelope: Envelope) -> bool:
        """Take a message back that is not begun. False if it is not waiting here."""
        if not self.remove(envelope):
            return False
        self.stats.dropped += 1
        return True

    def rest_left(self) -> float:
        """Seconds until this address, which rests, may be asked again."""
        assert self.record is not None
        return max(0.0, self.record.until - self.system.monotonic())

    # Handling them.

    async def drain(self, scope: CancelScope) -> bool:
        """Handle what waits. True if the worker should come back for more.

        A handler that is cancelled cuts this short with the cancellation; called again, it goes
        on with the next message.
        """
        current_cell.set(self)
        self.scope, self.cancelled = scope, False
        stats, carrier, monotonic = self.stats, self.system.carrier, self.system.monotonic
        carried: object = carrier  # No sender has sent this.
        queue = self._queue
        handled = longest = 0
        begun = monotonic()
        try:
            while queue and handled < BATCH and not self.cancelled:
                if len(queue) > longest:
                    longest = len(queue)
                envelope = queue.popleft()
                if self._parked is not None:
                    self.move_up()
                if envelope.reply is not None and envelope.reply.done():
                    stats.dropped += 1
                    continue
                if envelope.carried is not carried:
                    carried = envelope.carried
                    carrier.set(carried)
                handled += 1
                self.running = envelope
                value: object = _CUT_OFF
                try:
                    actor = self.actor
                    if actor is None:
                        actor = await self._load(envelope)
                    value = await actor.receive(envelope.message, envelope)
                except MiraError as error:
                    value = _FAILED
                    envelope.fail(error)
                except Exception as error:
                    value = _FAILED
                    self._failed(envelope, error)
                finally:
                    self.running = None
                    if value is _CUT_OFF:
                        self._cut_off(envelope, scope)
                if envelope.answerable and value is not _FAILED and envelope.taken is None:
                    envelope.answer(value)
                if self.resting:
                    return False
        finally:
            now = self.last = monotonic()
            stats.handled += handled
            stats.busy_seconds += now - begun
            if longest > stats.queue_high:
                stats.queue_high = longest
        if queue:
            return True
        self.tidy()
        self.awake = False
        self.scope = None
        return False

    def cancel(self) -> None:
        """Cancel the handler that is running."""
        if self.scope is not None:
            self.cancelled = True
            self.scope.cancel()

    async def _load(self, envelope: Envelope) -> Actor:
        actor = self.kind.factory(self.address)
        await actor.load(envelope)
        self.actor = actor
        return actor

    # Failing.

    def _cut_off(self, envelope: Envelope, scope: CancelScope) -> None:
        """The handler was cancelled in the middle, so what it was changing may be half changed."""
        self.actor = None
        if scope.cancel_called:
            envelope.cut_off()
        else:
            # It awaited something that somebody else had cancelled.
            self._failed(envelope, RuntimeError("a cancellation from within escaped the handler"))

    def _failed(self, envelope: Envelope, error: Exception) -> None:
        self.actor = None
        self.stats.failed += 1
        report(self.system.observer.actor_failed, self.address, envelope.message, error)
        envelope.fail(ActorFailed(f"{self.address} failed; the log has the details"))
        if self.record is None:
            self.record = Record()
        seconds = self.record.failed(self.system.monotonic(), self.kind.intensity)
        if seconds is not None:
            self._quarantine(seconds)

    def _quarantine(self, seconds: float) -> None:
        """Rest: asks and durable messages are refused, what was told waits."""
        self.resting = True
        report(self.system.observer.quarantined, self.address, seconds)
        self.system.ticker.after(seconds, Alarm(self._end_rest))
        for envelope in list(self):
            if envelope.answerable and self.withdraw(envelope):
                envelope.fail(self.resting_error())

    def _end_rest(self) -> None:
        self.resting = False
        if len(self):
            self.system.workers.dispatch(self)
        else:
            self.awake = False

    def resting_error(self) -> ActorQuarantined:
        left = self.rest_left()
        return ActorQuarantined(f"{self.address} failed too often and rests", retry_after=left)

    # Going away.

    def idle_left(self) -> float:
        """Seconds until this address counts as idle, if nobody speaks to it; 0 if it does now."""
        now = self.system.monotonic()
        left = self.kind.idle if self.awake or self.jobs else self.last + self.kind.idle - now
        if self.record is not None:
            left = max(left, self.record.matters_for(now, self.kind.intensity))
        return max(0.0, left)

    def check_later(self) -> None:
        """Have it checked for idleness when it could be idle."""
        self.system.ticker.after(self.idle_left(), self)

    def expire(self) -> None:
        """The time to see whether anybody has spoken to this address lately."""
        if self.idle_left() > 0:
            self.check_later()
        else:
            self.system.retirement.add(self)

    def abort(self) -> None:
        """Answer everything that waits, and cancel the handler that is running."""
        for envelope in list(self):
            if self.withdraw(envelope):
                envelope.fail(SystemStopped("the engine has stopped"))
        if self.running is not None:
            if self.running.answerable:
                self.running.fail(SystemStopped("the engine has stopped"))
            self.cancel()
