"""A summary that failed: what is told of it, and asking for it again before its time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mira.actors.memory_keeper_parts import SUMMARIES, keeper_of
from mira.actors.summaries_again import ask_again, waits
from mira.errors import Conflict
from mira.messages.memory import SummariseSegment
from mira.store.users import User
from tests.conftest import EPOCH
from tests.integration.keeper.test_keeper_summaries import GOOD, TRACE, ended, rows, script
from tests.support.keeper import Kept

pytestmark = pytest.mark.anyio


async def test_a_summary_that_failed_says_how_often_and_when_and_is_made_at_once_when_asked_for(
    kept: Kept, user: User
) -> None:
    kept.script(script(summary="I cannot assist with that request.", summary_again="No."))
    segment = await ended(kept, user)
    await kept.summarise(user.id, segment)
    for failures in (3, 6):
        async with kept.database.user(user.id) as tx:
            wait = (await waits(tx, user.id, [segment]))[segment]
            [later] = await tx.fetch("select now() + interval '23 hours' as at")
        assert (wait.failures, wait.unreached) == (failures, False)
        assert wait.due_at > later["at"]
        if failures == 6:
            kept.script(script(summary=GOOD))
        # Asked twice it is made once.
        for _ in range(2):
            async with kept.database.user(user.id) as tx:
                await ask_again(kept.core.system, tx, user.id, segment)
        await kept.settled()
    assert [row["trace"] for row in await rows(kept, user)] == [TRACE]
    assert await kept.rows(user.id, "select id from outbox where key = $1", str(segment)) == []
    async with kept.database.user(user.id) as tx:
        assert await waits(tx, user.id, [segment]) == {}
        with pytest.raises(Conflict):
            await ask_again(kept.core.system, tx, user.id, segment)


async def test_a_summary_that_waits_its_turn_was_not_tried_in_vain(kept: Kept, user: User) -> None:
    segment = await ended(kept, user)
    async with kept.database.user(user.id) as tx:
        await kept.core.system.tell_durable(
            tx, keeper_of(user.id), SummariseSegment(segment_id=segment),
            at=EPOCH + timedelta(days=36_500), lane=SUMMARIES, key=str(segment),
        )  # fmt: skip
    async with kept.database.user(user.id) as tx:
        assert await waits(tx, user.id, [segment]) == {}
