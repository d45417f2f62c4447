"""Undo of what was undone, long after: what it leads back to may be gone, or turned round."""

from __future__ import annotations

from itertools import pairwise
from uuid import UUID

import pytest

from mira.errors import Conflict
from mira.store.memory_events import Kind
from mira.store.users import User
from tests.integration.memory_fixtures import here
from tests.support.memory import Remembering

__all__ = ["here"]
pytestmark = pytest.mark.anyio


async def two(here: Remembering, user: UUID) -> tuple[UUID, UUID]:
    one = await here.add(user, "Grace lives in Vienna", about=[("Grace", "PERSON")])
    other = await here.add(user, "Grace moved to Graz in May", about=[("Gracie", "PERSON")])
    return one.memory.id, other.memory.id


async def undo_last(here: Remembering, user: UUID, memory_id: UUID, kind: Kind) -> None:
    """Undo the last event of a kind."""
    events = [e for e in await here.memories.history(user, memory_id) if e.kind == kind]
    await here.memories.undo(user, events[-1].id)


async def entity(here: Remembering, user: UUID, name: str) -> UUID:
    return next(one.id for one in await here.memories.entities(user) if one.name == name)


async def names(here: Remembering, user: UUID) -> list[str]:
    return [one.name for one in await here.memories.entities(user)]


async def test_two_memories_never_stand_in_the_place_of_each_other(
    here: Remembering, user: User
) -> None:
    old, new = await two(here, user.id)
    await here.memories.supersede(user.id, old, new, actor="user")
    await undo_last(here, user.id, old, "superseded")
    await here.memories.supersede(user.id, new, old, actor="user")
    with pytest.raises(Conflict, match="taken the place of its successor"):
        await undo_last(here, user.id, old, "undone")
    assert (await here.memories.get(user.id, old)).superseded_by is None


async def test_a_closing_is_not_done_again_in_favour_of_a_memory_that_is_gone(
    here: Remembering, user: User
) -> None:
    old, new = await two(here, user.id)
    await here.memories.supersede(user.id, old, new, actor="user")
    await undo_last(here, user.id, old, "superseded")
    await here.memories.delete(user.id, new, actor="user")
    with pytest.raises(Conflict, match="gone"):
        await undo_last(here, user.id, old, "undone")
    assert (await here.memories.get(user.id, old)).valid_to is None


async def test_a_merge_is_not_undone_once_a_source_is_gone(here: Remembering, user: User) -> None:
    old, new = await two(here, user.id)
    third = (await here.add(user.id, "Ada plays the cello on Sundays")).memory.id
    await here.memories.supersede(user.id, old, new, actor="user")
    made = await here.memories.merge(
        user.id, [new, third], "Grace lives in Graz, and Ada plays the cello", actor="user"
    )
    await here.memories.delete(user.id, new, actor="user")
    with pytest.raises(Conflict, match="gone"):
        await undo_last(here, user.id, made.id, "created")
    assert (await here.memories.get(user.id, old)).superseded_by == made.id
    assert (await here.memories.get(user.id, third)).status == "archived"


async def test_two_names_never_lead_to_each_other(here: Remembering, user: User) -> None:
    await two(here, user.id)
    grace = await entity(here, user.id, "Grace")
    gracie = await entity(here, user.id, "Gracie")
    await here.memories.merge_entities(user.id, gracie, [grace], actor="user")
    await undo_last(here, user.id, grace, "merged")
    await here.memories.merge_entities(user.id, grace, [gracie], actor="user")
    with pytest.raises(Conflict, match="merged into it by now"):
        await undo_last(here, user.id, grace, "undone")
    assert await names(here, user.id) == ["Grace"]


async def test_a_name_is_not_merged_again_into_one_that_is_gone(
    here: Remembering, user: User
) -> None:
    _, new = await two(here, user.id)
    grace = await entity(here, user.id, "Grace")
    gracie = await entity(here, user.id, "Gracie")
    await here.memories.merge_entities(user.id, gracie, [grace], actor="user")
    await undo_last(here, user.id, grace, "merged")
    await here.memories.delete(user.id, new, actor="user")
    with pytest.raises(Conflict, match="gone"):
        await undo_last(here, user.id, grace, "undone")
    assert await names(here, user.id) == ["Grace"]


async def test_a_name_is_followed_through_any_number_of_merges(
    here: Remembering, user: User
) -> None:
    letters = "abcdefghijklmn"
    for letter in letters:
        await here.add(user.id, f"Somebody signs as {letter}", about=[(f"Name {letter}", "PERSON")])
    chain = [await entity(here, user.id, f"Name {letter}") for letter in letters]
    for one, into in pairwise(chain):
        await here.memories.merge_entities(user.id, into, [one], actor="user")
    await here.add(user.id, "The first of them wrote a book", about=[("Name a", "PERSON")])
    [left] = await here.memories.entities(user.id)
    assert (left.name, left.memories) == ("Name n", len(letters) + 1)


async def test_words_of_an_undone_merge_go_with_the_source_that_is_deleted(
    here: Remembering, user: User
) -> None:
    secret, other = await two(here, user.id)
    third = (await here.add(user.id, "Ada plays the cello on Sundays")).memory.id
    await here.memories.link(user.id, third, secret, "other", reason="xerxes", actor="user")
    made = await here.memories.merge(
        user.id, [secret, other], "Xerxes stands for Grace in Zanzibar", actor="user"
    )
    await undo_last(here, user.id, made.id, "created")
    await here.memories.unlink(user.id, third, secret, "other", actor="user")
    await here.memories.delete(user.id, secret, actor="user")
    async with here.database.user(user.id) as tx:
        held = await tx.value("select string_agg(e::text, ' ') from memory_events e")
    assert "Xerxes" not in held
    assert "xerxes" not in held
    assert "Vienna" not in held
    assert "cello" in held
    kinds = [event.kind for event in await here.memories.history(user.id, made.id)]
    assert kinds[0] == "created"
    with pytest.raises(Conflict):
        await undo_last(here, user.id, made.id, "undone")
