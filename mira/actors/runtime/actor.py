"""What an actor is, and what its handler may do: the contract between the engine and actors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Generic, Protocol, TypeVar

import msgspec

from mira.clock import Clock
from mira.errors import MiraError
from mira.messages.base import Address, Event, Message, Written

from .durable import DurableMessage, DurableRow
from .routes import Contribution, HandlerFailure

T = TypeVar("T")


class Actor:
    """One address come to life.

    The engine makes an instance by the factory of its kind when the address is first spoken to,
    calls `load` once, and then `receive` for one message at a time, in the order in which they
    came. An instance that fails, or is cut off in the middle of a message, is dropped as it is;
    the next message gets a new one. So whatever must be remembered is stored elsewhere.
    """

    __slots__ = ()

    async def load(self, ctx: Context) -> None:
        """Read what is remembered, before the first message. `ctx` is that message's.

        If it raises, that message is answered with the error and the next one tries again.
        """

    async def receive(self, message: Message, ctx: Context) -> object:
        """Handle one message; what is returned answers an ask.

        A MiraError answers the asker and keeps this instance. Any other exception is a bug: the
        asker is told ActorFailed and this instance is dropped. When the deadline of an ask
        passes, the handler is cancelled and the instance dropped, since it may be half changed;
        clean-up that must be whole is shielded.
        """
        raise NotImplementedError(f"{type(self).__name__} does not understand {message!r:.80}")

    def control(self, message: Message) -> None:
        """Act on a message of the control lane: at once, even while `receive` is running.

        It does not wait and changes nothing but what it is meant to stop, such as a cancel
        scope that `receive` has opened.
        """

    async def passivate(self) -> None:
        """Release what this instance holds, before it is dropped for idleness or at stop."""


class Outcome(msgspec.Struct, Generic[T], frozen=True):
    """How a job ended: a value, an error, or cancelled."""

    value: T | None = None
    error: MiraError | None = None
    cancelled: bool = False

    @property
    def ok(self) -> bool:
        return self.error is None and not self.cancelled


class Job(Protocol):
    """A hand on a running or waiting job."""

    def cancel(self) -> None:
        """Stop it; its outcome is then `cancelled`. Does nothing once it has ended."""
        ...

    @property
    def done(self) -> bool: ...


class Context(Protocol):
    """One message in the hands of its handler. Not to be used for another message."""

    @property
    def address(self) -> Address:
        """The address of this actor."""
        ...

    @property
    def clock(self) -> Clock: ...

    @property
    def durable(self) -> DurableRow | None:
        """The row of a durable message; None for any other."""
        ...

    async def tell(self, to: Address, message: Message) -> None:
        """Send, waiting in turn for room in the mailbox.

        Order: what one sender tells one address arrives in the order told. Raises MailboxFull
        when there is no room within the system's `tell_timeout`, or at once when waiting would
        be for this very actor; SystemStopped.
        """
        ...

    def tell_nowait(self, to: Address, message: Message) -> None:
        """Send, or raise MailboxFull at once."""
        ...

    async def ask(self, to: Address, message: Message, *, timeout: float) -> object:
        """Send and return the answer, within `timeout` seconds.

        Raises the MiraError that the handler raised; DeadlineExceeded; ActorFailed for a bug in
        the handler; ActorQuarantined; SystemStopped; DeadlockError when the kind asked does not
        rank below this one, or is waiting for this very answer. An asker that is cancelled
        takes a message that is not begun back.
        """
        ...

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
        """Write a message that will arrive if, and only if, the transaction `tx` commits.

        `at` (aware) is the earliest time of delivery. Order holds within an address
        and lane. An undone message of the same address, lane and key is replaced.
        """
        ...

    async def write_durable(self, tx: object, messages: Sequence[DurableMessage]) -> None:
        """Write several durable messages at once, in order: see `tell_durable`."""
        ...

    def durable_written(self, written: Written) -> None:
        """Say that a statement of the caller's own has written a durable message and committed."""
        ...

    async def done(self, tx: object) -> bool:
        """Mark this durable message done in the transaction of its own effect.

        Returns False if it was replaced meanwhile: then the newer one is still delivered.
        """
        ...

    def mark_done(self) -> None:
        """Say that this durable message was marked done in a transaction that has committed.

        For a handler whose own statement has removed the row, in place of `done`.
        """
        ...

    def again(self) -> None:
        """Have this durable message delivered once more, behind what is waiting now.

        It is neither done nor failed, and loses no attempt.
        """
        ...

    def job(
        self,
        kind: str,
        work: Callable[[], Awaitable[T]],
        *,
        then: Callable[[Outcome[T]], Message] | None = None,
        take_reply: bool = False,
    ) -> Job:
        """Do slow work beside this actor; at most so many of a `kind` run at a time.

        `then` turns its outcome into a message to this actor. With `take_reply` the job also
        answers the message being handled: an ask gets its value or error, and the deadline of
        the ask cancels the job; a durable message is done, or backed off, when the job ends.
        Raises RateLimited when too many are waiting already.
        """
        ...

    async def publish(self, event: Event) -> tuple[HandlerFailure, ...]:
        """Tell an event to its handlers; all of them have ended when this returns."""
        ...

    def contribute(self, event: Event) -> tuple[Contribution, ...]:
        """What the contributors of an event want to be in its transaction."""
        ...
