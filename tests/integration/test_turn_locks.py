"""Transactions of one conversation take their locks in one order: none waits for the other."""

from __future__ import annotations

import anyio
import pytest

from mira.clock import SystemClock
from mira.ids import SystemIds
from mira.messages.content import Text
from mira.messages.turn import TurnState
from mira.store import turns
from mira.store.database import Database
from mira.store.turns import Closing
from mira.store.users import User

pytestmark = pytest.mark.anyio


async def until_somebody_waits(database: Database) -> None:
    with anyio.fail_after(10):
        while True:
            async with database.engine() as tx:
                if await tx.value("select exists (select from pg_locks where not granted)"):
                    return


async def test_a_turn_can_be_put_back_in_line_while_its_last_attempt_is_being_settled(
    database: Database, user: User
) -> None:
    ids, now, turn_id = SystemIds(), SystemClock().now(), SystemIds().new()
    async with database.engine() as tx:
        generation = await tx.value("select generation from house")
    async with database.user(user.id) as tx:
        fence = await turns.activate(tx, user.id, generation)
        await turns.accept(
            tx, user.id, turn_id=turn_id, message_id=ids.new(), request_id="one", digest=b"",
            blocks=(Text(text="one"),), at=now, limit=9, generation=generation,
        )  # fmt: skip
    for attempt in (1, 2):
        await turns.take(database.step, user.id, fence, ids.new(), now, 7200.0)
        failed = Closing(turn_id=turn_id, attempt=attempt, state=TurnState.FAILED)
        await turns.close(database.step, user.id, fence, failed, now)
        if attempt == 1:
            async with database.user(user.id) as tx:
                await turns.retry(tx, user.id, turn_id, now, generation)
    async with anyio.create_task_group() as group, database.user(user.id) as tx:
        # As retrying begins: with the lock on the conversation.
        await tx.execute("select from conversations for no key update")
        group.start_soon(turns.settle, database.step, user.id, turn_id, now, 0)
        await until_somebody_waits(database)
        retried = await turns.retry(tx, user.id, turn_id, now, generation)
    assert retried.state is TurnState.RECEIVED
