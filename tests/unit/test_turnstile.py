"""Who has much to do keeps nobody else out."""

from __future__ import annotations

from uuid import UUID

import anyio
import pytest
from anyio.lowlevel import checkpoint

from mira.web.turnstile import Turnstile

pytestmark = pytest.mark.anyio
GREEDY, OTHER, THIRD = UUID(int=1), UUID(int=2), UUID(int=3)


async def settled() -> None:
    for _ in range(20):
        await checkpoint()


async def test_one_user_never_holds_more_than_one_place_and_others_get_the_rest() -> None:
    turnstile, go, inside = Turnstile(2), anyio.Event(), list[UUID]()

    async def work(user: UUID) -> None:
        async with turnstile.of(user):
            inside.append(user)
            await go.wait()

    async with anyio.create_task_group() as group:
        for user in (GREEDY, GREEDY, GREEDY, OTHER, THIRD):
            group.start_soon(work, user)
        await settled()
        assert inside == [GREEDY, OTHER]
        go.set()
    assert sorted(inside) == [GREEDY, GREEDY, GREEDY, OTHER, THIRD]
    assert len(turnstile) == 0


async def test_who_leaves_while_waiting_or_fails_at_work_blocks_nobody() -> None:
    turnstile = Turnstile(1)

    async def fail() -> None:
        async with turnstile.of(GREEDY):
            with anyio.CancelScope() as scope:
                scope.cancel()
                async with turnstile.of(OTHER):
                    pytest.fail("got in")
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        await fail()
    with anyio.fail_after(1):
        async with turnstile.of(OTHER):
            pass
        async with turnstile.of(GREEDY):
            pass
