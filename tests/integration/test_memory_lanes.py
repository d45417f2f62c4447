"""The lanes over real rows: true BM25, common terms bounded, ids that collide."""

from __future__ import annotations

from math import log
from uuid import UUID

import pytest

from mira.ids import SystemIds
from mira.memory import lanes
from mira.memory.memories import Memories
from mira.memory.model import NewMemory
from mira.memory.terms import term_frequencies, terms
from mira.store import postings
from mira.store.spaces import Source
from mira.store.users import User
from tests.integration.memory_fixtures import here
from tests.support.memory import Remembering

__all__ = ["here"]
pytestmark = pytest.mark.anyio

TEXTS = (
    "The garden has roses, roses and more roses", "A garden is work, and work is what she likes",
    "Work at the office begins at nine", "The office has a small garden on the roof",
    "Roses need water, water and light", "She likes tea and he likes coffee",
    "Nine people like to work in the garden", "The roof of the office leaks when it rains",
)  # fmt: skip


def bm25(query: str, texts: tuple[str, ...]) -> dict[int, float]:
    """By the book: k1 1.2, b 0.75, over documents numbered from 1."""
    counted = [term_frequencies(text) for text in texts]
    average = sum(c.total() for c in counted) / len(counted)
    scores = {}
    for doc, found in enumerate(counted, 1):
        score = 0.0
        for term in set(terms(query)):
            holding = sum(term in other for other in counted)
            weight = log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
            held = 1.2 * (0.25 + 0.75 * found.total() / average)
            score += weight * found[term] * 2.2 / (found[term] + held)
        if score:
            scores[doc] = score
    return scores


async def test_words_are_weighed_as_bm25_has_it_and_common_ones_sort_what_rare_ones_found(
    here: Remembering, user: User, other: User
) -> None:
    for text in TEXTS:
        await here.add(user.id, text)
    await here.add(other.id, TEXTS[0])
    query = "does she like roses in the garden or work at the office?"
    expected = bm25(query, TEXTS)
    async with here.database.user(user.id) as tx:
        whole = await postings.corpus(tx, user.id, Source.MEMORIES)
        found = await lanes.lexical(tx, user.id, whole, [query], (), None, most=50)
        assert found == pytest.approx(expected)
        few = await lanes.lexical(tx, user.id, whole, [query], (), None, most=50, budget=3)
        assert few
        assert all(few[doc] == pytest.approx(expected[doc]) for doc in few)
        best = max(expected, key=lambda doc: expected[doc])
        assert await lanes.lexical(tx, user.id, whole, [query], (), None, most=1) == {
            best: pytest.approx(expected[best])
        }
        rest = await lanes.lexical(tx, user.id, whole, [query], {best}, None, most=50)
        assert rest.keys() == expected.keys() - {best}
        assert await lanes.lexical(tx, user.id, whole, ["of the and"], (), None, most=5) == {}


class Colliding(SystemIds):
    """Ids whose short forms repeat until a third has been drawn."""

    def __init__(self) -> None:
        self.drawn = 0

    def new(self) -> UUID:
        self.drawn += 1
        made = super().new()
        last = 0xABCDEF00 + (self.drawn // 6)
        return UUID(int=(made.int >> 32 << 32) | last)


async def test_a_short_id_that_is_taken_is_drawn_again(here: Remembering, user: User) -> None:
    ids = Colliding()
    memories = Memories(here.database, here.encoders, None, here.clock, ids)
    made = [
        (await memories.create(user.id, NewMemory(text=text, source="user"), actor="user")).memory
        for text in TEXTS[:4]
    ]
    assert len({memory.short_id for memory in made}) == 4
    assert ids.drawn > 4 * 3
    for memory in made:
        assert (await memories.get(user.id, memory.short_id)).id == memory.id
