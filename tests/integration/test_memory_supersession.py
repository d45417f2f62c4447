"""A newer fact closes an older one, whoever says so and however it is said."""

from __future__ import annotations

import pytest

from mira.errors import Conflict
from mira.store.users import User
from tests.integration.memory_fixtures import here
from tests.support.memory import Remembering

__all__ = ["here"]
pytestmark = pytest.mark.anyio


async def test_a_link_that_says_so_closes_the_older_fact(here: Remembering, user: User) -> None:
    old = (await here.add(user.id, "Grace lives in Vienna")).memory
    new = (await here.add(user.id, "Grace moved house to Graz last spring")).memory
    link = await here.memories.link(
        user.id, new.id, old.id, "supersedes", reason="she moved", actor="user"
    )
    assert link.reason == "she moved"
    closed = await here.memories.get(user.id, old.id)
    assert closed.superseded_by == new.id
    assert closed.valid_to is not None
    # One step: undoing it takes back both.
    superseded = (await here.memories.history(user.id, old.id))[-1]
    linked = (await here.memories.history(user.id, new.id))[-1]
    assert (superseded.kind, linked.kind) == ("superseded", "linked")
    assert superseded.step == linked.step
    await here.memories.undo(user.id, superseded.id)
    reopened = await here.memories.get(user.id, old.id)
    assert (reopened.superseded_by, reopened.valid_to) == (None, None)
    assert await here.memories.links(user.id, old.id) == []
    await here.agrees(user.id)


async def test_facts_cannot_supersede_each_other(here: Remembering, user: User) -> None:
    one = (await here.add(user.id, "Grace lives in Vienna")).memory
    two = (await here.add(user.id, "Grace moved house to Graz last spring")).memory
    await here.memories.link(user.id, two.id, one.id, "supersedes", actor="user")
    with pytest.raises(Conflict):
        await here.memories.link(user.id, one.id, two.id, "supersedes", actor="user")
    assert len(await here.memories.links(user.id, one.id)) == 1
    await here.agrees(user.id)


async def test_what_was_true_until_some_time_is_not_merged_into_what_is_true_now(
    here: Remembering, user: User
) -> None:
    old = (await here.add(user.id, "Grace lives in Vienna")).memory
    new = (await here.add(user.id, "Grace lives in Graz now", supersedes=(old.id,))).memory
    other = (await here.add(user.id, "Ada keeps bees")).memory
    await here.memories.delete(user.id, new.id, actor="user")
    closed = await here.memories.get(user.id, old.id)
    assert (closed.status, closed.superseded_by) == ("active", None)
    assert closed.valid_to is not None
    with pytest.raises(Conflict):
        await here.memories.merge(user.id, [old.id, other.id], "Grace, bees, Vienna", actor="user")
