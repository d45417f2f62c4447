"""Durable messages on Postgres: written with their cause, in order, replaced, buried, replayed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mira.clock import ManualClock
from mira.ids import SystemIds
from mira.messages.base import Address, DurableMessage, DurableRow
from mira.messages.turn import SettleAction, TakeTurns
from mira.store.database import Database
from mira.store.outbox import PostgresOutbox, replay
from mira.store.users import User

pytestmark = pytest.mark.anyio
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ids = SystemIds()


@pytest.fixture
def outbox(database: Database) -> PostgresOutbox:
    return PostgresOutbox(database, ManualClock(NOW))


async def write(
    database: Database,
    outbox: PostgresOutbox,
    user: User,
    *,
    lane: str = "main",
    key: str | None = None,
    at: datetime | None = None,
) -> tuple[DurableRow, bool]:
    message = DurableMessage(
        to=Address("continuum", str(user.id)),
        message=SettleAction(action_id=ids.new(), at=NOW), lane=lane, key=key, at=at,
    )  # fmt: skip
    async with database.user(user.id) as tx:
        [written] = await outbox.write(tx, [message])
    return written.row, written.head


async def test_a_message_exists_only_if_its_cause_was_committed(
    database: Database, outbox: PostgresOutbox, user: User
) -> None:
    message = DurableMessage(to=Address("continuum", str(user.id)), message=TakeTurns(at=NOW))
    called: list[str] = []

    async def fail_after_writing() -> None:
        async with database.user(user.id) as tx:
            await outbox.write(tx, [message])
            outbox.after_commit(tx, lambda: called.append("after"))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail_after_writing()
    assert await outbox.due(NOW, limit=10, busy=[]) == []
    assert called == []


async def test_only_the_oldest_of_a_lane_is_due_and_lanes_do_not_wait_for_each_other(
    database: Database, outbox: PostgresOutbox, user: User
) -> None:
    first, head = await write(database, outbox, user)
    assert head
    second, head = await write(database, outbox, user)
    assert not head
    other, _ = await write(database, outbox, user, lane="other")
    assert [r.id for r in await outbox.due(NOW, limit=10, busy=[])] == [first.id, other.id]
    busy = [(first.to, "main")]
    assert [r.id for r in await outbox.due(NOW, limit=10, busy=busy)] == [other.id]
    assert await outbox.done(first)
    assert [r.id for r in await outbox.due(NOW, limit=1, busy=[])] == [second.id]


async def test_a_row_in_back_off_holds_up_its_lane_and_no_other(
    database: Database, outbox: PostgresOutbox, user: User
) -> None:
    first, _ = await write(database, outbox, user)
    await write(database, outbox, user)
    other, _ = await write(database, outbox, user, lane="other")
    later = NOW + timedelta(seconds=30)
    await outbox.back_off(first, later, "Boom", attempt=True)
    assert [r.id for r in await outbox.due(NOW, limit=10, busy=[])] == [other.id]
    assert await outbox.next_due(NOW) == later
    due = await outbox.due(later, limit=10, busy=[])
    assert {(r.id, r.attempts) for r in due} == {(first.id, 1), (other.id, 0)}


async def test_the_same_key_replaces_an_undone_message_and_the_old_one_cannot_finish_it(
    database: Database, outbox: PostgresOutbox, user: User
) -> None:
    old, _ = await write(database, outbox, user, key="timer", at=NOW + timedelta(hours=1))
    new, _ = await write(database, outbox, user, key="timer", at=NOW + timedelta(hours=2))
    assert (new.id, new.version) == (old.id, old.version + 1)
    assert not await outbox.done(old)
    assert await outbox.next_due(NOW) == NOW + timedelta(hours=2)
    async with database.user(user.id) as tx:
        assert await outbox.done(new, tx)
    assert await outbox.next_due(NOW) is None


async def test_a_dead_letter_can_be_replayed_once(
    database: Database, outbox: PostgresOutbox, user: User
) -> None:
    row, _ = await write(database, outbox, user)
    await outbox.bury(row, "Boom")
    assert await outbox.due(NOW, limit=10, busy=[]) == []
    async with database.engine() as tx:
        [letter] = await tx.fetch("select id, attempts, error from dead_letters")
        assert (letter["attempts"], letter["error"]) == (1, "Boom")
        assert await replay(tx, letter["id"], NOW)
        assert not await replay(tx, letter["id"], NOW)
    [back] = await outbox.due(NOW, limit=10, busy=[])
    assert back.message == row.message


async def test_a_user_can_neither_see_nor_write_anothers_durable_messages(
    database: Database, outbox: PostgresOutbox, user: User, other: User
) -> None:
    row, _ = await write(database, outbox, user)
    async with database.user(other.id) as tx:
        assert await tx.value("select count(*) from outbox") == 0
        assert not await outbox.done(row, tx)
    assert len(await outbox.due(NOW, limit=10, busy=[])) == 1


async def test_a_hundred_thousand_waiting_timers_do_not_slow_the_search_for_due_work(
    database: Database, outbox: PostgresOutbox, user: User
) -> None:
    async with database.engine() as tx:
        await tx.execute(
            "insert into outbox (user_id, kind, address, lane, payload, due_at, created_at) "
            "select $1, 'continuum', gen_random_uuid()::text, 'timer', $2::jsonb, "
            "$3::timestamptz + interval '1 hour', $3 from generate_series(1, 100000)",
            user.id, '{"type": "TakeTurns", "at": "2026-03-01T12:00:00Z"}', NOW,
        )  # fmt: skip
    due, _ = await write(database, outbox, user, lane="now")
    async with database.engine() as tx:
        await tx.execute("analyze outbox")
        plan = await tx.fetch(
            "explain (analyze, buffers off, timing off, format text) "
            "select id from outbox o where o.due_at <= $1 and not exists (select 1 from outbox p "
            "where p.kind = o.kind and p.address = o.address and p.lane = o.lane and p.id < o.id) "
            "order by o.due_at, o.id limit 10",
            NOW,
        )
    told = "\n".join(r[0] for r in plan)
    assert "Seq Scan" not in told, told
    assert [r.id for r in await outbox.due(NOW, limit=10, busy=[])] == [due.id]
    assert await outbox.next_due(NOW) == NOW + timedelta(hours=1)
