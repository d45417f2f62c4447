"""Use-days go by: scores sink, what earns nothing is put away, what is used or dated stays."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mira.memory import forgetting
from mira.memory.steps import Steps
from mira.store import memory_scores
from mira.store.users import User
from tests.integration.memory_fixtures import here
from tests.support.memory import Remembering, texts_of

__all__ = ["here"]
pytestmark = pytest.mark.anyio
DAY = timedelta(days=1)

FORGOTTEN = "The tram was late this morning"
USED = "Ada is allergic to peanuts"
AHEAD = "Grace marries in the old town hall"
OVER = "The circus is in town for a week"


async def new_day(here: Remembering, user: User) -> None:
    """What the keeper does when the user speaks on another day."""
    await here.live(user.id)
    async with here.database.user(user.id) as tx:
        await here.memories.recalculate(tx, user.id)
        await here.memories.forget(tx, user.id)


async def active(here: Remembering, user: User) -> set[str]:
    return set(texts_of(await here.memories.page(user.id)))


async def test_what_is_never_used_is_put_away_and_what_is_used_or_still_to_happen_stays(
    here: Remembering, user: User, other: User
) -> None:
    now = here.clock.now()
    forgotten = (await here.add(user.id, FORGOTTEN)).memory
    used = (await here.add(user.id, USED)).memory
    await here.add(user.id, AHEAD, happens_at=now + 300 * DAY)
    await here.add(user.id, OVER, expires_at=now + 2 * DAY)
    await here.add(other.id, FORGOTTEN)
    left: dict[str, int] = {}
    for day in range(1, 41):
        await new_day(here, user)
        if day % 10 == 0:
            await here.memories.used(user.id, [used.id], turn_id=await here.turn(user.id))
        for text in {FORGOTTEN, USED, AHEAD, OVER} - await active(here, user) - left.keys():
            left[text] = day
    assert await active(here, user) == {USED, AHEAD}
    # Under the floor when what it was given as new is used up, and away seven use-days later.
    assert 20 <= left[FORGOTTEN] <= 23
    assert 12 <= left[OVER] <= 15
    assert await here.texts(user.id, FORGOTTEN) == await here.texts(user.id, USED)
    event = (await here.memories.history(user.id, forgotten.id))[-1]
    assert (event.kind, event.actor) == ("archived", "decay")
    await here.agrees(user.id)
    # The days of one user are not those of another.
    assert await active(here, other) == {FORGOTTEN}
    await here.memories.undo(user.id, event.id)
    assert FORGOTTEN in await active(here, user)
    await here.agrees(user.id)


async def test_a_holiday_of_the_user_costs_a_memory_nothing(here: Remembering, user: User) -> None:
    stored = (await here.add(user.id, FORGOTTEN)).memory
    here.clock.advance(400 * 86_400)
    async with here.database.user(user.id) as tx:
        assert await here.memories.recalculate(tx, user.id) == 0
        assert await here.memories.forget(tx, user.id) == []
    assert await here.memories.get(user.id, stored.id) == stored


async def test_use_while_it_sinks_begins_the_count_anew(here: Remembering, user: User) -> None:
    stored = (await here.add(user.id, FORGOTTEN)).memory
    for _ in range(18):
        await new_day(here, user)
    sinking = await here.memories.get(user.id, stored.id)
    assert sinking.below_since_use_day is not None
    await here.memories.used(user.id, [stored.id], turn_id=await here.turn(user.id))
    assert (await here.memories.get(user.id, stored.id)).below_since_use_day is None
    for _ in range(10):
        await new_day(here, user)
    assert FORGOTTEN in await active(here, user)


@pytest.mark.parametrize("how", ["restored", "undone"])
async def test_what_comes_back_from_the_archive_is_not_forgotten_again_the_next_day(
    here: Remembering, user: User, how: str
) -> None:
    stored = (await here.add(user.id, FORGOTTEN)).memory
    while FORGOTTEN in await active(here, user):
        await new_day(here, user)
    await here.live(user.id, 20)
    if how == "restored":
        await here.memories.restore(user.id, stored.id, actor="user")
    else:
        forgotten = (await here.memories.history(user.id, stored.id))[-1]
        await here.memories.undo(user.id, forgotten.id)
    days = 0
    while FORGOTTEN in await active(here, user):
        await new_day(here, user)
        days += 1
    assert days == 8


async def test_a_review_sees_what_is_about_to_go_and_what_it_leaves_has_seven_days_more(
    here: Remembering, user: User, other: User
) -> None:
    stored = (await here.add(user.id, FORGOTTEN)).memory
    for _ in range(19):
        await new_day(here, user)
    async with here.database.user(user.id) as tx:
        [seen] = await forgetting.sinking(tx, user.id, within=7, limit=10)
        assert seen.id == stored.id
        assert await forgetting.sinking(tx, user.id, within=1, limit=10) == []
        await memory_scores.reviewed(tx, user.id, [seen.id], 19)
        assert await forgetting.sinking(tx, user.id, within=7, limit=10) == []
    async with here.database.user(other.id) as tx:
        assert await forgetting.sinking(tx, other.id, within=7, limit=10) == []
    days = 0
    while FORGOTTEN in await active(here, user):
        await new_day(here, user)
        days += 1
    assert days == 8
    assert (await here.memories.get(user.id, stored.id)).reviewed_use_day == 19


async def test_dated_memories_follow_the_calendar_between_use_days(
    here: Remembering, user: User
) -> None:
    now = here.clock.now()
    near = (await here.add(user.id, "Ada sees the dentist", happens_at=now + 3 * DAY)).memory
    far = (await here.add(user.id, "Ada flies to Peru", happens_at=now + 90 * DAY)).memory
    here.clock.advance(2.5 * 86_400)
    async with here.database.user(user.id) as tx:
        assert await here.memories.recalculate(tx, user.id, dated=True) == 1
    assert (await here.memories.get(user.id, near.id)).importance > near.importance
    assert (await here.memories.get(user.id, far.id)).importance == far.importance


async def test_what_integration_has_looked_at_is_not_looked_at_again(
    here: Remembering, user: User, other: User
) -> None:
    one = (await here.add(user.id, FORGOTTEN)).memory
    two = (await here.add(user.id, USED)).memory
    async with here.database.user(user.id) as tx:
        assert await memory_scores.not_integrated(tx, user.id, limit=9) == [one.id, two.id]
        await memory_scores.integrated(tx, user.id, [one.id], here.clock.now())
        assert await memory_scores.not_integrated(tx, user.id, limit=9) == [two.id]
    async with here.database.user(other.id) as tx:
        await memory_scores.integrated(tx, other.id, [two.id], here.clock.now())
    assert (await here.memories.get(user.id, two.id)).integrated_at is None


async def test_forgetting_goes_in_bounded_pieces(here: Remembering, user: User) -> None:
    for text in (FORGOTTEN, USED, OVER):
        await here.add(user.id, text)
    await here.live(user.id, 30)
    steps = Steps(here.database, here.encoders, here.clock, here.ids)
    async with here.database.user(user.id) as tx:
        await here.memories.recalculate(tx, user.id)
    await here.live(user.id, 7)
    sizes = []
    for _ in range(3):
        async with here.database.user(user.id) as tx:
            sizes.append(len(await forgetting.forget(steps, tx, user.id, limit=2)))
    assert sizes == [2, 1, 0]
    await here.agrees(user.id)
