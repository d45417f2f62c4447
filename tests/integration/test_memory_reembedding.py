"""Another embedding model: vectors move in the background, and searches never mix the two."""

from __future__ import annotations

import pytest

from mira.clock import SystemClock
from mira.errors import ValidationFailed
from mira.memory import reembedding
from mira.memory.embedding import Embedder
from mira.memory.memories import Memories
from mira.memory.model import NewMemory
from mira.memory.pool import CpuPool
from mira.memory.query import RecallQuery
from mira.memory.steps import Steps
from mira.store import spaces
from mira.store.database import Database
from mira.store.users import User
from tests.integration.memory_fixtures import here
from tests.support.memory import START, OneEncoder, Remembering
from tests.support.models import Wide

__all__ = ["here"]
pytestmark = pytest.mark.anyio

FACTS = (
    "Ada plays the cello every Sunday", "The car is an old green Volvo", "Rex is a brown dog",
    "Grace teaches mathematics at school", "The rent of the flat is 900 euros",
)  # fmt: skip


def _new(text: str) -> NewMemory:
    return NewMemory(text=text, source="user")


async def counts(database: Database, user: User) -> tuple[int, int]:
    async with database.user(user.id) as tx:
        row = await tx.row(
            "select (select count(*) from vectors_384) as old, "
            "(select count(*) from vectors_768) as new"
        )
    assert row is not None
    return row["old"], row["new"]


async def test_a_user_stays_with_the_old_model_until_all_is_moved_and_then_changes_at_once(
    here: Remembering, user: User, other: User
) -> None:
    for text in FACTS:
        await here.add(user.id, text)
    await here.add(other.id, FACTS[0])
    old = here.encoders.current
    assert old is not None
    pool = CpuPool(1)
    wide = Embedder(Wide, pool, SystemClock())
    await wide.warm()
    try:
        encoders = OneEncoder(wide, old)
        moving = Memories(here.database, encoders, None, here.clock, here.ids)
        steps = Steps(here.database, encoders, here.clock, here.ids)

        async def best(phrase: str) -> tuple[str, float]:
            ranking = await moving.search(user.id, RecallQuery(phrases=(phrase,)))
            assert ranking.dense == "exact"
            return ranking.hits[0].memory.text, ranking.hits[0].lanes["dense"][1]

        before = await best("which instrument does she play")
        assert before[0] == FACTS[0]
        seen = []
        while await reembedding.step(steps, user.id, at_once=2):
            seen.append(await counts(here.database, user))
            if len(seen) == 1:
                # What is written on the way is there in both.
                added = await moving.create(
                    user.id, _new("The bicycle has a flat tyre"), actor="user"
                )
            assert (await best("which instrument does she play"))[0] == FACTS[0]
            async with here.database.user(user.id) as tx:
                ours = await spaces.find(tx, user.id)
            assert ours is not None
            if ours.next is not None:
                assert await best("which instrument does she play") == before
        assert seen[0] == (5, 2)
        assert await counts(here.database, user) == (0, 6)
        assert not await reembedding.step(steps, user.id)
        after = await best("which instrument does she play")
        assert after[0] == FACTS[0]
        assert after[1] == pytest.approx(before[1], abs=2e-3)
        assert (await best("flat tyre"))[0] == added.memory.text
        # Nobody else was touched.
        assert await counts(here.database, other) == (1, 0)
        # And back, though it was not finished.
        back = Steps(here.database, OneEncoder(old, wide), here.clock, here.ids)
        assert await reembedding.step(back, user.id)
        while await reembedding.step(steps, user.id):
            pass
        assert await counts(here.database, user) == (0, 6)
    finally:
        await wide.aclose()
        await pool.aclose()


async def test_what_was_stored_without_an_encoder_gets_its_vector_later(
    here: Remembering, user: User, other: User
) -> None:
    blind = Memories(here.database, OneEncoder(None), None, here.clock, here.ids)
    for text in FACTS:
        await blind.create(user.id, _new(text), actor="user")
    assert await counts(here.database, user) == (0, 0)
    steps = Steps(here.database, here.encoders, here.clock, here.ids)
    while await reembedding.step(steps, user.id):
        pass
    assert (await here.texts(user.id, "which instrument does she play"))[0] == FACTS[0]
    await here.agrees(user.id)
    assert not await reembedding.step(steps, other.id)


async def test_a_model_of_a_dimension_without_a_table_is_refused(
    database: Database, user: User
) -> None:
    async with database.user(user.id) as tx:
        await spaces.register(tx, "small", 384, START)
        for name, dimension in (("odd", 300), ("small", 768)):
            with pytest.raises(ValidationFailed):
                await spaces.register(tx, name, dimension, START)
