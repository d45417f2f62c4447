"""The outbox on Postgres: undone durable messages, written in the transaction of their cause.

Order holds within (address, lane) by id. Nothing is leased in the database: one serving process
works on it (see server_lock), and what is in flight is known there. A row is deleted by the
transaction that does its work, which makes that work happen once. Writing and doing run as the
user; finding, backing off and burying as the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import asyncpg
import msgspec

from mira.clock import Clock
from mira.messages.base import Address, DurableMessage, DurableRow, Written
from mira.messages.wire import decode_durable, encode_durable
from mira.store.database import Database, Tx
from mira.telemetry import logger

log = logger("outbox")

_COLUMNS = "o.id, o.version, o.kind, o.address, o.lane, o.key, o.payload, o.attempts, o.due_at"

_WRITE = f"""
insert into outbox as o (user_id, kind, address, lane, key, payload, due_at, created_at)
  values (app_user(), $1, $2, $3, $4, $5::jsonb, $6, $7)
on conflict (kind, address, lane, key) where key is not null
  do update set version = o.version + 1, payload = excluded.payload, due_at = excluded.due_at,
                attempts = 0, last_error = null
returning {_COLUMNS},
  not exists (select 1 from outbox p where p.kind = o.kind and p.address = o.address
                and p.lane = o.lane and p.id < o.id) as head
"""  # noqa: S608

# Only due rows are looked at, and of each only whether an older one stands in its lane: the cost
# does not grow with timers that wait.
_DUE = f"""
select {_COLUMNS} from outbox o
where o.due_at <= $1
  and not exists (select 1 from outbox p where p.kind = o.kind and p.address = o.address
                    and p.lane = o.lane and p.id < o.id)
  and (o.kind, o.address, o.lane) not in
      (select * from unnest($2::text[], $3::text[], $4::text[]))
order by o.due_at, o.id
limit $5
"""  # noqa: S608

_BURY = """
with gone as (delete from outbox where id = $1 and version = $2 returning *)
insert into dead_letters (outbox_id, user_id, kind, address, lane, key, payload, attempts, error,
                          created_at, buried_at)
select id, user_id, kind, address, lane, key, payload, attempts + 1, $3, created_at, $4 from gone
"""

_REPLAY = """
with letter as (
  update dead_letters set replayed_at = $2 where id = $1 and replayed_at is null returning *)
insert into outbox as o (user_id, kind, address, lane, key, payload, due_at, created_at)
  select user_id, kind, address, lane, key, payload, $2, created_at from letter
on conflict (kind, address, lane, key) where key is not null do nothing
"""


class PostgresOutbox:
    """The engine's port to durable messages. `tx` is always a Tx of the address's user."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def write(self, tx: object, messages: Sequence[DurableMessage]) -> Sequence[Written]:
        """Write down each message in the caller's transaction."""
        assert isinstance(tx, Tx)
        now = self._clock.now()
        written = []
        for m in messages:
            row = await tx.row(
                _WRITE, m.to.kind, m.to.key, m.lane, m.key, encode_durable(m.message),
                m.at or now, now,
            )  # fmt: skip
            assert row is not None
            written.append(Written(row=_row(row), head=row["head"]))
        return written

    async def due(
        self, now: datetime, *, limit: int, busy: Sequence[tuple[Address, str]]
    ) -> Sequence[DurableRow]:
        """The due heads of lanes that are not in `busy`, earliest first."""
        kinds = [address.kind for address, _ in busy]
        keys = [address.key for address, _ in busy]
        lanes = [lane for _, lane in busy]
        found = []
        async with self._database.engine() as tx:
            for row in await tx.fetch(_DUE, now, kinds, keys, lanes, limit):
                try:
                    found.append(_row(row))
                except msgspec.MsgspecError as error:
                    # One that nobody can read must not hold up all others.
                    log.error("durable_message_unreadable", outbox_id=row["id"], exc_info=error)
                    await tx.execute(_BURY, row["id"], row["version"], "Unreadable", now)
        return found

    async def next_due(self, now: datetime) -> datetime | None:
        """When the next row after `now` falls due."""
        async with self._database.engine() as tx:
            at: datetime | None = await tx.value(
                "select min(due_at) from outbox where due_at > $1", now
            )
        return at

    async def done(self, row: DurableRow, tx: object | None = None) -> bool:
        """The work is done, in `tx` if given. False if a newer message has replaced this one."""
        sql = "delete from outbox where id = $1 and version = $2"
        if tx is not None:
            assert isinstance(tx, Tx)
            return await tx.execute(sql, row.id, row.version) == 1
        async with self._database.engine() as own:
            return await own.execute(sql, row.id, row.version) == 1

    async def back_off(
        self, row: DurableRow, due_at: datetime, error: str, *, attempt: bool
    ) -> None:
        """Try again at `due_at`; `attempt` says whether this one counts."""
        async with self._database.engine() as tx:
            await tx.execute(
                "update outbox set due_at = $3, last_error = $4, attempts = attempts + $5 "
                "where id = $1 and version = $2",
                row.id, row.version, due_at, error, int(attempt),
            )  # fmt: skip

    async def bury(self, row: DurableRow, error: str) -> None:
        """Move it to the dead letters; its lane goes on."""
        async with self._database.engine() as tx:
            await tx.execute(_BURY, row.id, row.version, error, self._clock.now())

    def after_commit(self, tx: object, callback: Callable[[], None]) -> None:
        """Call `callback` when the transaction has committed."""
        assert isinstance(tx, Tx)
        tx.after_commit(callback)


async def replay(tx: Tx, letter_id: int, now: datetime) -> bool:
    """Put a dead letter back into the outbox, in an engine transaction. False if it is not there
    or was replayed before; a newer undone message with its key stands in its place."""
    exists = await tx.value(
        "select true from dead_letters where id = $1 and replayed_at is null", letter_id
    )
    if not exists:
        return False
    await tx.execute(_REPLAY, letter_id, now)
    return True


def _row(row: asyncpg.Record) -> DurableRow:
    return DurableRow(
        id=row["id"],
        version=row["version"],
        to=Address(row["kind"], row["address"]),
        lane=row["lane"],
        key=row["key"],
        message=decode_durable(row["payload"]),
        attempts=row["attempts"],
        due_at=row["due_at"],
    )
