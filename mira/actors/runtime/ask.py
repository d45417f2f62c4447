"""Envelopes that somebody waits for: an ask for its answer, a parked tell for room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mira.errors import DeadlineExceeded, MailboxFull
from mira.messages.base import Address, Message

from .backend import Waiter
from .envelope import Envelope

if TYPE_CHECKING:
    from .cell import Cell
    from .jobs import RunningJob


class Ask(Envelope):
    """A message whose sender waits for the answer, until its deadline."""

    __slots__ = ("bucket", "chain", "reply", "sent", "taken")

    answerable = True

    def __init__(
        self,
        cell: Cell,
        message: Message,
        carried: object,
        reply: Waiter[object],
        chain: tuple[Address, ...],
        sent: float,
    ) -> None:
        self.cell = cell
        self.message = message
        self.carried = carried
        self.reply: Waiter[object] = reply
        self.chain = chain
        self.sent = sent
        self.taken: RunningJob[Any] | None = None
        #: Where the ticker keeps the deadline; -1 once it is settled.
        self.bucket = -1

    def hand_over(self, job: RunningJob[Any]) -> None:
        self.taken = job

    def answer(self, value: object) -> None:
        if not self.reply.done():
            self.reply.set_result(value)
            took = self.cell.system.monotonic() - self.sent
            self.cell.stats.ask_latency[min(int(took * 1e6).bit_length(), 31)] += 1
        self.settle()

    def fail(self, error: Exception) -> None:
        if not self.reply.done():
            self.reply.set_exception(error)
        self.settle()

    def settle(self) -> None:
        """Nothing is waited for any more: forget the deadline."""
        if self.bucket >= 0:
            self.cell.system.ticker.discard(self.bucket, self)
            self.bucket = -1

    def expire(self) -> None:
        """The deadline has passed: answer, and stop whatever works on the answer."""
        self.bucket = -1
        self.fail(DeadlineExceeded(f"{self.cell.address} did not answer in time"))
        if self.taken is not None:
            self.taken.cancel()
        elif self.cell.running is self:
            self.cell.cancel()
        else:
            self.cell.withdraw(self)

    def left(self) -> None:
        """The asker is gone. What is not begun is taken back; what is runs until its deadline."""
        if self.bucket >= 0 and self.cell.withdraw(self):
            self.settle()


class ParkedTell(Envelope):
    """A message that is told to a full mailbox; its sender waits for room."""

    __slots__ = ("bucket", "room")

    def __init__(self, cell: Cell, message: Message, carried: object, room: Waiter[None]) -> None:
        super().__init__(cell, message, carried)
        self.room = room
        self.bucket = -1

    def admitted(self) -> None:
        # A sender that was cancelled in the same moment has sent all the same.
        if not self.room.done():
            self.room.set_result(None)
        self._settle()

    def fail(self, error: Exception) -> None:
        if self.room.done():
            super().fail(error)
        else:
            self.room.set_exception(error)
        self._settle()

    def expire(self) -> None:
        self.bucket = -1
        self.cell.withdraw(self)
        self.fail(MailboxFull(f"the mailbox of {self.cell.address} stays full"))

    def left(self) -> None:
        """The sender is gone. What is still parked is not sent."""
        if self.bucket >= 0:
            self.cell.withdraw(self)
            self._settle()

    def _settle(self) -> None:
        if self.bucket >= 0:
            self.cell.system.ticker.discard(self.bucket, self)
            self.bucket = -1
