"""The vectors of a history: looked at by their signs in a long one, moved to another model."""

from __future__ import annotations

import numpy as np
import pytest

from mira.clock import SystemClock
from mira.ids import SystemIds
from mira.memory import reembedding
from mira.memory.embedding import Embedder
from mira.memory.passages import PassageSearch
from mira.memory.pool import CpuPool
from mira.memory.query import RecallQuery
from mira.memory.steps import Steps
from mira.store import passage_search, spaces, vectors
from mira.store.database import Database
from mira.store.spaces import Source
from mira.store.users import User
from tests.support.chat import Chat
from tests.support.memory import START, OneEncoder, real_encoders
from tests.support.models import Wide

pytestmark = pytest.mark.anyio

SAID = (
    "I bought a cello yesterday, second hand.", "- How many strings were broken?",
    "Two. The neighbours complain already.", "- Practise with a mute, then.",
    "The heron stood in the river again.", "- Did it catch anything?",
    "My dentist moved the appointment to Friday.", "- I will remind you.",
)  # fmt: skip
#: The number of the first message of a history; the others follow it.
FIRST = 2
#: More messages than are compared one by one.
MANY = passage_search.EXACT + 400


async def _best(search: PassageSearch, user: User, phrase: str) -> tuple[int, float]:
    """The number of the first message found, and its cosine."""
    found = await search.search(user.id, RecallQuery(phrases=(phrase,)))
    assert found.dense == "exact"
    return found.hits[0].doc, found.hits[0].lanes["meaning"][1]


async def test_a_history_stays_with_the_old_model_until_all_of_it_is_moved(
    database: Database, user: User
) -> None:
    async with real_encoders() as old:
        chat = Chat(database, old, user)
        await chat.say(SAID)
        pool = CpuPool(1)
        wide = Embedder(Wide, pool, SystemClock())
        await wide.warm()
        try:
            encoders = OneEncoder(wide, *(one for one in (old.current,) if one))
            steps = Steps(database, encoders, SystemClock(), SystemIds())
            search = PassageSearch(database, encoders)
            before = await _best(search, user, "which instrument does she play")
            assert before[0] == FIRST
            moved, seen = 0, []
            while await reembedding.step(steps, user.id, at_once=3):
                moved += 1
                async with database.user(user.id) as tx:
                    known = await spaces.find(tx, user.id)
                assert known is not None
                if known.next is not None:
                    seen.append(known.active.dimension)
                    assert await _best(search, user, "which instrument does she play") == before
            assert moved > 3
            assert set(seen) == {384}
            async with database.user(user.id) as tx:
                known = await spaces.find(tx, user.id)
                assert known is not None
                docs = list(range(FIRST, FIRST + len(SAID)))
                stored = await passage_search.stored(tx, user.id, known.active, docs)
                left = await tx.value("select count(*) from vectors_384")
            assert known.active.dimension == 768
            assert left == 0
            # Each message has its own vector and the one with its neighbours.
            assert [*zip(stored.docs, stored.units, strict=True)] == [
                (doc, unit) for doc in docs for unit in (0, 1)
            ]
            after = await _best(search, user, "which instrument does she play")
            assert after[0] == before[0]
            assert after[1] == pytest.approx(before[1], abs=2e-3)
        finally:
            await wide.aclose()
            await pool.aclose()


async def test_a_long_history_is_searched_by_signs_first_and_finds_the_same(
    database: Database, user: User
) -> None:
    async with real_encoders() as encoders:
        chat = Chat(database, encoders, user)
        await chat.say(SAID)
        query = ("which instrument does she play", "a bird")
        short = await chat.found(*query)
        async with database.user(user.id) as tx:
            await tx.execute(
                "update corpora set documents = documents + $2, length = length + 8 * $2 "
                "where user_id = $1 and source = 2",
                user.id, MANY,
            )  # fmt: skip
        long = await chat.found(*query)
    assert (short.dense, long.dense) == ("exact", "signs")
    assert {hit.doc for hit in long.hits} == {hit.doc for hit in short.hits}
    for hit in long.hits:
        [alike] = [one for one in short.hits if one.doc == hit.doc]
        assert hit.lanes["meaning"] == alike.lanes["meaning"]


async def test_signs_of_thousands_lead_to_the_nearest_and_not_to_what_was_removed(
    database: Database, user: User
) -> None:
    random = np.random.default_rng(3)
    topics = random.normal(size=(60, 384))

    def near(middle: np.ndarray) -> np.ndarray:
        one = middle + random.normal(scale=0.8, size=384)
        return one / np.linalg.norm(one)

    rows = [
        (doc, unit, near(topics[doc % 60]).tolist())
        for doc in range(1, MANY + 1)
        for unit in (0, 1)
    ]
    asked = [near(topic).tolist() for topic in topics[:12]]
    shares = []
    async with database.user(user.id) as tx:
        space = (await spaces.ensure(tx, user.id, "a model", 384, START)).active
        await vectors.put(tx, user.id, Source.PASSAGES, space, rows)
        gone = list(range(1, 200))
        await vectors.remove(tx, user.id, Source.PASSAGES, gone)
        for vector in asked:
            exact, found = [
                await passage_search.nearest(
                    tx, user.id, space, vector, documents=documents, limit=20
                )
                for documents in (1, MANY)
            ]
            assert not {*found.parts, *found.windows} & set(gone)
            assert found.parts[0] == exact.parts[0]
            assert found.windows[0] == exact.windows[0]
            shares += [
                len({*found.parts} & {*exact.parts}) / 20,
                len({*found.windows} & {*exact.windows}) / 20,
            ]
    assert np.mean(shares) > 0.97
