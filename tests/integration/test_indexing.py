"""What was said can be found: taken in after each turn, in order, once, whatever happens."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from uuid import UUID

import anyio
import pytest

from mira.clock import SystemClock
from mira.llm.base import TextDelta
from mira.llm.scripted import Wait, says
from mira.memory import passage_text, terms
from mira.memory.indexing import HistoryIndex, NoEncoders
from mira.memory.passage_text import PassageText
from mira.store.database import Database
from mira.store.users import User
from tests.support.core import Core, running_core

pytestmark = pytest.mark.anyio


async def _index(database: Database, user_id: UUID) -> int:
    """Take everything in; how many steps that took."""
    index, steps = HistoryIndex(database, NoEncoders(), SystemClock()), 0
    while await index.step(user_id):
        steps += 1
    return steps


async def _passages(database: Database, user_id: UUID) -> list[tuple[int, str, str]]:
    async with database.user(user_id) as tx:
        rows = await tx.fetch(
            "select p.doc, p.role, m.content #>> '{0,text}' as words from passages p "
            "join messages m on m.id = p.message_id order by p.doc"
        )
    return [(row["doc"], row["role"], row["words"]) for row in rows]


async def _documents_with(database: Database, user_id: UUID, word: str) -> list[int]:
    [term] = terms.terms(word)
    async with database.user(user_id) as tx:
        rows = await tx.fetch("select doc from postings where term = $1 order by doc", term)
    return [row["doc"] for row in rows]


async def test_messages_of_a_segment_are_numbered_side_by_side(
    database: Database, user: User
) -> None:
    async with running_core(database, says("one"), says("two")) as core:
        await core.ask(user.id, "The heron stood in the river")
        await core.ask(user.id, "and flew away")
    await _index(database, user.id)
    first = (await _passages(database, user.id))[0][0]
    assert await _passages(database, user.id) == [
        (first, "user", "The heron stood in the river"),
        (first + 1, "assistant", "one"),
        (first + 2, "user", "and flew away"),
        (first + 3, "assistant", "two"),
    ]
    assert await _documents_with(database, user.id, "herons") == [first]


async def test_a_new_segment_begins_beyond_a_gap(database: Database, user: User) -> None:
    async with running_core(database, says("one"), says("two")) as core:
        await core.ask(user.id, "first day")
        async with database.user(user.id) as tx:
            await tx.execute("update segments set state = 'collapsed', collapsed_at = now()")
        await core.ask(user.id, "second day")
    await _index(database, user.id)
    docs = [doc for doc, _, _ in await _passages(database, user.id)]
    assert [b - a for a, b in pairwise(docs)] == [1, 2, 1]


async def test_taking_in_again_changes_nothing(database: Database, user: User) -> None:
    async with running_core(database, says("one")) as core:
        await core.ask(user.id, "The heron stood in the river")
    await _index(database, user.id)
    before = await _everything(database, user.id)
    assert await _index(database, user.id) == 0
    assert await _everything(database, user.id) == before


async def test_a_turn_that_was_tried_again_is_found_by_its_last_answer(
    database: Database, user: User
) -> None:
    async with running_core(database, (TextDelta("a stork"), Wait(30.0)), says("an egret")) as core:
        turn = await _cancelled_in_the_middle(core, user.id)
        await _index(database, user.id)
        assert await _documents_with(database, user.id, "stork")
        await core.conversations.retry(user.id, turn)
        async with core.conversations.follow(user.id, turn) as batches:
            async for _ in batches:
                pass
    await _index(database, user.id)
    assert not await _documents_with(database, user.id, "stork")
    assert len(await _documents_with(database, user.id, "egret")) == 1
    assert [role for _, role, _ in await _passages(database, user.id)] == ["user", "assistant"]
    async with database.user(user.id) as tx:
        assert await tx.value("select documents from corpora where source = 2") == 2
        wrong = await tx.value(
            "select count(*) from term_counts t where t.documents <> (select count(*) from "
            "postings p where p.term = t.term and p.source = t.source)"
        )
    assert wrong == 0


async def test_words_of_a_cancelled_turn_are_found(database: Database, user: User) -> None:
    async with running_core(database, (TextDelta("never said"), Wait(30.0))) as core:
        await _cancelled_in_the_middle(core, user.id)
    await _index(database, user.id)
    assert (await _passages(database, user.id))[0][2] == "which bird was it"


async def test_names_and_local_date_belong_to_the_searched_text(
    database: Database, user: User
) -> None:
    async with database.user(user.id) as tx:
        await tx.execute("update users set display_name = 'Ada Lovelace', assistant_name = 'Mira'")
    async with running_core(database, says("yes")) as core:
        await core.ask(user.id, "is it spring")
    await _index(database, user.id)
    first, second = (doc for doc, _, _ in await _passages(database, user.id))
    assert await _documents_with(database, user.id, "Lovelace") == [first]
    assert await _documents_with(database, user.id, "Mira") == [second]


async def test_the_indexer_is_woken_by_the_turn_itself(database: Database, user: User) -> None:
    taken_in = anyio.Event()

    class Told(HistoryIndex):
        async def step(self, user_id: UUID) -> bool:
            more = await super().step(user_id)
            if not more:
                taken_in.set()
            return more

    index = Told(database, NoEncoders(), SystemClock())
    async with running_core(database, says("one"), index=index) as core:
        await core.ask(user.id, "The heron stood in the river")
        with anyio.fail_after(10):
            await taken_in.wait()
    assert len(await _passages(database, user.id)) == 2
    async with database.user(user.id) as tx:
        assert await tx.value("select count(*) from outbox where kind = 'indexer'") == 0


async def test_nobody_else_finds_it(database: Database, user: User, other: User) -> None:
    async with running_core(database, says("one")) as core:
        await core.ask(user.id, "The heron stood in the river")
    await _index(database, user.id)
    assert not await _documents_with(database, other.id, "heron")
    assert not await _passages(database, other.id)


@pytest.mark.parametrize(
    "words",
    ["ok", "x" * 5_000, "word " * 5_000, "木が森に立っている。" * 300, "مرحبا بالعالم " * 400, "é"],
)
def test_every_text_has_parts_that_hold_all_its_words(words: str) -> None:
    one = PassageText(doc=1, speaker="Ada", at=SystemClock().now(), words=words)
    parts = passage_text.parts(one)
    assert parts
    assert all(part.startswith("Ada: ") for part in parts)
    if len(parts) < passage_text.MOST_PARTS:
        kept = " ".join(part.removeprefix("Ada: ") for part in parts).split()
        assert "".join(kept) == "".join(words.split())


async def _cancelled_in_the_middle(core: Core, user_id: UUID) -> UUID:
    turn = await core.say(user_id, "which bird was it")
    async with core.conversations.follow(user_id, turn) as batches:
        async for batch in batches:
            if any(getattr(event, "text", "") for event in batch):
                await core.conversations.cancel(user_id, turn)
    return turn


async def _everything(database: Database, user_id: UUID) -> list[Any]:
    async with database.user(user_id) as tx:
        return [
            await tx.fetch(f"select * from {table} order by 1, 2, 3")  # noqa: S608
            for table in ("passages", "postings", "term_counts", "corpora")
        ]
