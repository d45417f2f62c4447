"""Doubles that keep the same promises: an outbox in memory, a clock on the event loop's time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from types import TracebackType

import anyio
from msgspec.structs import replace

from mira.clock import Clock
from mira.errors import DatabaseUnavailable

from .durable import DurableMessage, DurableRow, Lane, Written


class LoopClock:
    """The time of the running event loop, so that trio's mock clock moves all of it.

    Both clocks start when this is made, inside a running loop.
    """

    def __init__(self, start: datetime | None = None) -> None:
        self._zero = anyio.current_time()
        self._start = start or datetime(2026, 1, 5, 9, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return anyio.current_time() - self._zero

    async def sleep(self, seconds: float) -> None:
        # The engine's one sleeper comes through here.
        await anyio.sleep(seconds)  # noqa: TID251


class MemoryTransaction:
    """Changes that happen together when the block is left without an exception, or not at all."""

    def __init__(self, outbox: MemoryOutbox) -> None:
        self._outbox = outbox
        self._changes: list[Callable[[], object]] = []
        self._callbacks: list[Callable[[], None]] = []
        self.open = False

    def on_commit(self, change: Callable[[], object]) -> None:
        """Make a change of one's own part of this transaction: the effect of a handler."""
        self._changes.append(change)

    def call_after(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    async def __aenter__(self) -> MemoryTransaction:
        self.open = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.open = False
        if kind is not None:
            return
        await self._outbox.step("commit")
        for change in self._changes:
            change()
        for callback in self._callbacks:
            callback()


class MemoryOutbox:
    """An Outbox in memory. It outlives the systems that use it, as a database would.

    `down` makes every call raise DatabaseUnavailable. `pause`, if set, is awaited at every step
    with its name (write, due, done, back_off, bury, commit): for stopping in the middle.
    Transactions do not see each other's uncommitted rows, and do not lock them.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.rows: dict[int, DurableRow] = {}
        self.dead: list[tuple[DurableRow, str]] = []
        self.down = False
        self.pause: Callable[[str], Awaitable[None]] | None = None
        self.calls: dict[str, int] = {}
        self._last_id = 0

    def transaction(self) -> MemoryTransaction:
        return MemoryTransaction(self)

    async def step(self, name: str) -> None:
        """One exchange with the store."""
        self.calls[name] = self.calls.get(name, 0) + 1
        if self.pause is not None:
            await self.pause(name)
        await anyio.lowlevel.checkpoint()
        if self.down:
            raise DatabaseUnavailable("the outbox is down")

    # The port: see Outbox.

    async def write(self, tx: object, messages: Sequence[DurableMessage]) -> Sequence[Written]:
        await self.step("write")
        transaction = _open(tx)
        written: list[Written] = []
        for message in messages:
            row = self._row(message, self._last_id + 1)
            self._last_id = max(self._last_id, row.id)
            transaction.on_commit(partial(self.rows.__setitem__, row.id, row))
            others = [*self.rows.values(), *(w.row for w in written)]
            head = not any(o.id < row.id for o in others if _lane(o) == _lane(row))
            written.append(Written(row=row, head=head))
        return written

    def _row(self, message: DurableMessage, new_id: int) -> DurableRow:
        row = DurableRow(
            id=new_id,
            version=1,
            to=message.to,
            lane=message.lane,
            key=message.key,
            message=message.message,
            attempts=0,
            due_at=message.at or self._clock.now(),
        )
        for old in self.rows.values():
            if message.key is not None and (_lane(old), old.key) == (_lane(row), row.key):
                return replace(row, id=old.id, version=old.version + 1)
        return row

    async def due(self, now: datetime, *, limit: int, busy: Sequence[Lane]) -> Sequence[DurableRow]:
        await self.step("due")
        heads: dict[Lane, DurableRow] = {}
        for row in sorted(self.rows.values(), key=lambda row: row.id):
            heads.setdefault(_lane(row), row)
        due = [row for lane, row in heads.items() if row.due_at <= now and lane not in busy]
        return due[:limit]

    async def next_due(self, now: datetime) -> datetime | None:
        return min((row.due_at for row in self.rows.values() if row.due_at > now), default=None)

    async def done(self, row: DurableRow, tx: object | None = None) -> bool:
        await self.step("done")
        there = self.rows.get(row.id)
        if there is None or there.version != row.version:
            return False
        if tx is None:
            del self.rows[row.id]
        else:
            _open(tx).on_commit(partial(self.rows.pop, row.id, None))
        return True

    async def back_off(
        self, row: DurableRow, due_at: datetime, error: str, *, attempt: bool
    ) -> None:
        await self.step("back_off")
        there = self.rows.get(row.id)
        if there is not None and there.version == row.version:
            attempts = there.attempts + attempt
            self.rows[row.id] = replace(there, due_at=due_at, attempts=attempts)

    async def bury(self, row: DurableRow, error: str) -> None:
        await self.step("bury")
        there = self.rows.get(row.id)
        if there is not None and there.version == row.version:
            del self.rows[row.id]
            self.dead.append((row, error))

    def after_commit(self, tx: object, callback: Callable[[], None]) -> None:
        _open(tx).call_after(callback)


def _lane(row: DurableRow) -> Lane:
    return (row.to, row.lane)


def _open(tx: object) -> MemoryTransaction:
    if not isinstance(tx, MemoryTransaction) or not tx.open:
        raise ValueError("not inside a transaction of this outbox")
    return tx
