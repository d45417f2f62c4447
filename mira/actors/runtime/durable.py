"""Messages that survive the process: their form, and the store that they need.

A durable message is written in the transaction of its cause, so it exists if and only if the
cause does. It is delivered at least once, and its effect happens exactly once when the handler
marks it done in the transaction of that effect. Order holds within a lane, which is an address
and a name; a message that must wait (back-off, a later time) holds up nothing but its lane.

No lease is written down: one process serves a database, and what is in flight is known in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol, TypeAlias

from mira.messages.base import Address, DurableMessage, DurableRow, Written

__all__ = ["DurableMessage", "DurableRow", "Lane", "Outbox", "Written"]

#: Where order holds: an address and a name.
Lane: TypeAlias = tuple[Address, str]


class Outbox(Protocol):
    """Where durable messages are kept. Every method may raise an outage such as a lost server.

    `tx` is whatever its owner calls a transaction; the engine only hands it on.
    """

    async def write(self, tx: object, messages: Sequence[DurableMessage]) -> Sequence[Written]:
        """Write in the caller's transaction, in order; one answer for each, in order.

        The undone row of the same (to, lane, key) is replaced in place by raising its version
        and starting its attempts afresh.
        """
        ...

    async def due(self, now: datetime, *, limit: int, busy: Sequence[Lane]) -> Sequence[DurableRow]:
        """At most `limit` rows that head a lane which is not busy, and are due at `now`."""
        ...

    async def next_due(self, now: datetime) -> datetime | None:
        """The earliest due time later than `now` among all undone rows, heads or not."""
        ...

    async def done(self, row: DurableRow, tx: object | None = None) -> bool:
        """Mark a row done, in `tx` or on its own.

        False if this version is not there any more: then nothing is changed.
        """
        ...

    async def back_off(
        self, row: DurableRow, due_at: datetime, error: str, *, attempt: bool
    ) -> None:
        """Set a row's next time, unless it was replaced; `attempt` says whether it costs one."""
        ...

    async def bury(self, row: DurableRow, error: str) -> None:
        """Move a row to the dead letters, unless it was replaced."""
        ...

    def after_commit(self, tx: object, callback: Callable[[], None]) -> None:
        """Call back once `tx` has committed; never if it has not."""
        ...
