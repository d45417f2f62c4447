"""Undo: every kind of change, whole steps, and never over what has been changed since."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from uuid import UUID

import msgspec
import pytest

from mira.errors import Conflict, NotFound
from mira.store.memories import Memory
from mira.store.users import User
from tests.integration.memory_fixtures import here
from tests.support.memory import Remembering

__all__ = ["here"]
pytestmark = pytest.mark.anyio

Change = Callable[[Remembering, UUID, Memory, Memory], Awaitable[object]]


async def _edit(here: Remembering, user: UUID, one: Memory, _: Memory) -> object:
    return await here.memories.edit(
        user, one.id, version=one.version, text="Ada plays the cello", happens_at=here.clock.now(),
        actor="user",
    )  # fmt: skip


async def _again(here: Remembering, user: UUID, one: Memory, _: Memory) -> object:
    return await here.add(user, one.text + "!", happens_at=here.clock.now())


async def _replace(here: Remembering, user: UUID, one: Memory, _: Memory) -> object:
    return await here.add(
        user, "Ada lives in Berlin", supersedes=(one.id,), about=[("Ada", "PERSON")]
    )


async def _archive(here: Remembering, user: UUID, one: Memory, _: Memory) -> object:
    return await here.memories.archive(user, one.id, actor="user")


async def _touch(here: Remembering, user: UUID, one: Memory, _: Memory) -> object:
    return await here.memories.touch(user, one.id, actor="user")


async def _link(here: Remembering, user: UUID, one: Memory, two: Memory) -> object:
    return await here.memories.link(user, one.id, two.id, "causes", reason="why", actor="user")


async def _unlink(here: Remembering, user: UUID, one: Memory, two: Memory) -> object:
    await here.memories.unlink(user, one.id, two.id, "other", actor="user")
    return None


async def _annotate(here: Remembering, user: UUID, one: Memory, _: Memory) -> object:
    return await here.memories.annotate(user, one.id, "a remark", author="user")


async def _merge(here: Remembering, user: UUID, one: Memory, two: Memory) -> object:
    return await here.memories.merge(user, [one.id, two.id], "Ada, Vienna, a car", actor="user")


async def _merge_entities(here: Remembering, user: UUID, _: Memory, __: Memory) -> object:
    ada, lovelace = await here.memories.entities(user)
    return await here.memories.merge_entities(user, ada.id, [lovelace.id], actor="user")


CHANGES: tuple[Change, ...] = (
    _edit, _again, _replace, _archive, _touch, _link, _unlink, _annotate, _merge, _merge_entities,
)  # fmt: skip

#: Everything of a user's memories that is not the account of it.
_STATE = """
select (select json_agg(m order by id)::text from (
    select id, short_id, doc, text, status, source, source_memories, happens_at, expires_at,
      valid_from, valid_to, superseded_by, created_at from memories) m),
  (select json_agg(s order by memory_id)::text from (
    select memory_id, use_day_accessed, access_count, mention_count from memory_scores) s),
  (select json_agg(l order by from_id, to_id, type)::text from memory_links l),
  (select json_agg(a order by id)::text from memory_annotations a),
  (select json_agg(x order by memory_id, entity_id)::text from memory_entities x),
  (select json_agg(e order by id)::text from (
    select id, name, key, type, merged_into from entities) e)
"""


async def state(here: Remembering, user: UUID) -> tuple[object, ...]:
    async with here.database.user(user) as tx:
        row = await tx.row(_STATE)
    assert row is not None
    return tuple(row)


async def newest_event(here: Remembering, user: UUID) -> UUID:
    async with here.database.user(user) as tx:
        found: UUID = await tx.value("select id from memory_events order by id desc limit 1")
    return found


async def begin(here: Remembering, user: UUID) -> tuple[Memory, Memory]:
    one = await here.add(user, "Ada lives in Vienna", about=[("Ada", "PERSON")])
    two = await here.add(user, "The green car is hers", about=[("Ada Lovelace", "PERSON")])
    await here.memories.link(user, one.memory.id, two.memory.id, "other", actor="user")
    return one.memory, two.memory


async def test_every_kind_of_change_can_be_undone_and_done_again_and_undone(
    here: Remembering, user: User
) -> None:
    one, two = await begin(here, user.id)
    for change in CHANGES:
        one, two = [await here.memories.get(user.id, m.id) for m in (one, two)]
        before = await state(here, user.id)
        await change(here, user.id, one, two)
        after = await state(here, user.id)
        assert after != before, change.__name__
        done = await newest_event(here, user.id)
        undone = await here.memories.undo(user.id, done)
        assert await state(here, user.id) == before, change.__name__
        await here.agrees(user.id)
        with pytest.raises(Conflict):
            await here.memories.undo(user.id, done)
        again = await here.memories.undo(user.id, undone.events[0].id)
        assert await state(here, user.id) == after, change.__name__
        await here.agrees(user.id)
        with pytest.raises(Conflict):
            await here.memories.undo(user.id, undone.events[0].id)
        await here.memories.undo(user.id, again.events[-1].id)
        assert await state(here, user.id) == before, change.__name__
        await here.agrees(user.id)


async def test_undoing_a_creation_takes_the_memory_away_and_undoing_that_brings_it_back(
    here: Remembering, user: User
) -> None:
    stored = await here.add(user.id, "Ada lives in Vienna", about=[("Ada", "PERSON")])
    await here.memories.used(user.id, [stored.memory.id], turn_id=await here.turn(user.id))
    undone = await here.memories.undo(user.id, stored.event_id)
    with pytest.raises(NotFound):
        await here.memories.get(user.id, stored.memory.id)
    assert await here.texts(user.id, "Vienna") == []
    await here.memories.undo(user.id, undone.events[0].id)
    back = await here.memories.get(user.id, stored.memory.short_id)
    assert (back.id, back.text, back.access_count) == (stored.memory.id, stored.memory.text, 1)
    kinds = [e.kind for e in await here.memories.history(user.id, back.id)]
    assert kinds == ["created", "undone", "undone"]
    await here.agrees(user.id)


async def test_restoring_is_undone_by_archiving(here: Remembering, user: User) -> None:
    one = (await here.add(user.id, "Ada lives in Vienna")).memory
    await here.memories.archive(user.id, one.id, actor="user")
    await here.memories.restore(user.id, one.id, actor="user")
    await here.memories.undo(user.id, await newest_event(here, user.id))
    assert (await here.memories.get(user.id, one.id)).status == "archived"
    await here.agrees(user.id)


async def test_a_step_whose_result_was_changed_since_is_not_undone_and_nothing_is_touched(
    here: Remembering, user: User
) -> None:
    one, two = await begin(here, user.id)
    created = (await here.memories.history(user.id, one.id))[0]
    await _edit(here, user.id, one, two)
    edited = await newest_event(here, user.id)
    one = await here.memories.get(user.id, one.id)
    await here.memories.edit(
        user.id, one.id, version=one.version, text="Ada plays the flute", actor="user"
    )
    merged = await here.memories.merge(user.id, [one.id, two.id], "All about Ada", actor="user")
    joined = await newest_event(here, user.id)
    await here.memories.annotate(user.id, merged.id, "a remark", author="user")
    before = await state(here, user.id)
    for event in (created.id, edited, joined):
        with pytest.raises(Conflict):
            await here.memories.undo(user.id, event)
        assert await state(here, user.id) == before
    await here.agrees(user.id)


async def test_counts_of_others_stay_when_a_mention_is_undone(
    here: Remembering, user: User
) -> None:
    one = (await here.add(user.id, "Ada lives in Vienna")).memory
    again = await here.add(user.id, "Ada lives in Vienna")
    await here.live(user.id)
    await here.memories.touch(user.id, one.id, actor="user")
    await here.memories.undo(user.id, again.event_id)
    left = await here.memories.get(user.id, one.id)
    assert (left.mention_count, left.use_day_accessed) == (1, 1)


async def test_a_deletion_and_what_it_took_cannot_be_undone(here: Remembering, user: User) -> None:
    one, two = await begin(here, user.id)
    merged = await here.memories.merge(user.id, [one.id, two.id], "All about Ada", actor="user")
    joined = await newest_event(here, user.id)
    created = (await here.memories.history(user.id, one.id))[0]
    await here.memories.delete(user.id, one.id, actor="user")
    deleted = await newest_event(here, user.id)
    for event in (deleted, created.id, joined):
        with pytest.raises(Conflict):
            await here.memories.undo(user.id, event)
    await here.memories.delete(user.id, merged.id, actor="user")
    left = await here.memories.get(user.id, two.id)
    assert (left.status, left.superseded_by) == ("archived", None)
    await here.agrees(user.id)


async def test_the_account_says_who_did_what_in_which_turn_and_what_stood_before(
    here: Remembering, user: User
) -> None:
    one = (await here.add(user.id, "Ada lives in Vienna")).memory
    turn = await here.turn(user.id)
    await here.memories.edit(
        user.id, one.id, version=1, text="Ada lives in Graz", actor="model", turn_id=turn
    )
    event = (await here.memories.history(user.id, one.short_id))[-1]
    assert (event.kind, event.actor, event.turn_id) == ("edited", "model", turn)
    assert msgspec.to_builtins(event.before) == {"fields": {"text": "Ada lives in Vienna"}}
    assert msgspec.to_builtins(event.after) == {"fields": {"text": "Ada lives in Graz"}}
