"""A message on its way; and, once it is handled, the handler's hand on the engine.

The envelope is the Context that the handler is given, so that a message costs one object. Each
kind of sending has its own: a tell needs little, an ask has somebody who waits (`ask`), a durable
message has a row (`dispatcher`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from mira.clock import Clock
from mira.errors import MiraError
from mira.messages.base import Address, Event, Message, Written

from .backend import Waiter
from .durable import DurableMessage, DurableRow
from .observer import report
from .routes import Contribution, HandlerFailure

if TYPE_CHECKING:
    from .actor import Job, Outcome
    from .cell import Cell
    from .jobs import RunningJob

T = TypeVar("T")


class Envelope:
    """A message that is told: nobody waits for it.

    `carried` is the value of the system's context variable where it was sent.
    """

    __slots__ = ("carried", "cell", "message")

    #: Where somebody waits for the answer; done if nobody does any more.
    reply: Waiter[object] | None = None
    #: The addresses that wait for the answer, outermost first.
    chain: tuple[Address, ...] = ()
    #: The job that will answer instead of the handler.
    taken: RunningJob[Any] | None = None
    durable: DurableRow | None = None
    #: Whether somebody, or some row, waits for the end of it.
    answerable = False

    def __init__(self, cell: Cell, message: Message, carried: object) -> None:
        self.cell = cell
        self.message = message
        self.carried = carried

    # How it ends.

    def admitted(self) -> None:
        """It was parked and is in the mailbox now."""

    def answer(self, value: object) -> None:
        """The handler has returned."""

    def fail(self, error: Exception) -> None:
        """The handler has failed or will not be begun."""
        if isinstance(error, MiraError):
            observer = self.cell.system.observer
            report(observer.message_rejected, self.cell.address, self.message, error)

    def hand_over(self, job: RunningJob[Any]) -> None:
        """A job will answer."""
        raise ValueError("nobody waits for an answer that a job could take over")

    def cut_off(self) -> None:
        """The handler was cancelled; whoever did so has answered."""

    # What the handler may do: see Context.

    @property
    def address(self) -> Address:
        return self.cell.address

    @property
    def clock(self) -> Clock:
        return self.cell.system.clock

    def tell(self, to: Address, message: Message) -> Coroutine[Any, Any, None]:
        return self.cell.system.tell(to, message)

    def tell_nowait(self, to: Address, message: Message) -> None:
        self.cell.system.tell_nowait(to, message)

    def ask(self, to: Address, message: Message, *, timeout: float) -> Coroutine[Any, Any, object]:
        return self.cell.system.ask_from(self, to, message, timeout)

    def tell_durable(
        self,
        tx: object,
        to: Address,
        message: Message,
        *,
        at: datetime | None = None,
        lane: str,
        key: str | None = None,
    ) -> Coroutine[Any, Any, None]:
        return self.cell.system.tell_durable(tx, to, message, at=at, lane=lane, key=key)

    def write_durable(
        self, tx: object, messages: Sequence[DurableMessage]
    ) -> Coroutine[Any, Any, None]:
        return self.cell.system.write_durable(tx, messages)

    def durable_written(self, written: Written) -> None:
        self.cell.system.durable_written(written)

    async def done(self, tx: object) -> bool:
        raise ValueError("only a durable message can be marked done")

    def mark_done(self) -> None:
        raise ValueError("only a durable message can be marked done")

    def again(self) -> None:
        raise ValueError("only a durable message can be delivered again")

    def job(
        self,
        kind: str,
        work: Callable[[], Awaitable[T]],
        *,
        then: Callable[[Outcome[T]], Message] | None = None,
        take_reply: bool = False,
    ) -> Job:
        return self.cell.system.jobs.start(self, kind, work, then, take_reply)

    def publish(self, event: Event) -> Coroutine[Any, Any, tuple[HandlerFailure, ...]]:
        return self.cell.system.routes.publish(event, self, self.cell.system)

    def contribute(self, event: Event) -> tuple[Contribution, ...]:
        return self.cell.system.routes.contribute(event, self.cell.system)
