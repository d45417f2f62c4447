"""Memories written, repeated, replaced, changed, merged, put away and removed."""

from __future__ import annotations

from datetime import datetime, timedelta

import anyio
import pytest

from mira.errors import Conflict, NotFound, ValidationFailed
from mira.memory.model import EntityName, NewMemory
from mira.memory.query import RecallQuery
from mira.store.database import Database
from mira.store.memory_events import Evidence
from mira.store.users import User
from tests.integration.memory_fixtures import here
from tests.support.memory import OneEncoder, Remembering, texts_of

__all__ = ["here"]
pytestmark = pytest.mark.anyio
DAY = timedelta(days=1)


async def test_what_is_stored_can_be_read_at_once_under_both_its_names(
    here: Remembering, user: User
) -> None:
    stored = await here.add(user.id, "Ada lives in Vienna", about=[("Ada", "PERSON")])
    memory = await here.memories.get(user.id, stored.memory.id)
    assert memory == await here.memories.get(user.id, stored.memory.short_id)
    assert (stored.outcome, memory.text, memory.version) == ("created", "Ada lives in Vienna", 1)
    assert memory.short_id == f"mem_{memory.id.hex[-8:]}"
    assert memory.entities == (EntityName("Ada", "PERSON"),)
    assert memory.importance == pytest.approx(0.4323, abs=0.001)
    await here.agrees(user.id)


SCRIPTS = [
    ("  Ada lives in\0 Vienna\ud800  ", "Ada lives in Vienna"),
    ("Cafe\u0301 Central is Ada's", "Café Central is Ada's"),
    ("阿达住在维也纳并且有一只狗", "阿达住在维也纳并且有一只狗"),
    ("عادة تعيش في فيينا", "عادة تعيش في فيينا"),
    ("👩‍👩‍👧‍👦👩‍👩‍👧‍👦 family", "👩‍👩‍👧‍👦👩‍👩‍👧‍👦 family"),
    ("?????????? !!", "?????????? !!"),
    ("word " * 799 + "end", "word " * 799 + "end"),
]


async def test_text_of_any_script_is_stored_clean(here: Remembering, user: User) -> None:
    for said, kept in SCRIPTS:
        stored = await here.add(user.id, said)
        assert (await here.memories.get(user.id, stored.memory.id)).text == kept
    await here.agrees(user.id)


async def test_a_text_that_is_too_short_or_too_long_is_refused_and_leaves_nothing(
    here: Remembering, user: User
) -> None:
    for text in ("", "too short", " \0" * 50, "x" * 4001, "\ud800" * 20):
        with pytest.raises(ValidationFailed):
            await here.add(user.id, text)
    assert await here.memories.page(user.id) == []


async def test_a_time_without_an_offset_is_refused(here: Remembering, user: User) -> None:
    with pytest.raises(ValidationFailed):
        await here.add(
            user.id, "The dentist is on Friday", happens_at=here.clock.now().replace(tzinfo=None)
        )


@pytest.mark.parametrize(
    "moment",
    ["0001-01-01T00:00:00+00:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"],
)
async def test_a_time_that_cannot_be_told_everywhere_is_refused(
    here: Remembering, user: User, moment: str
) -> None:
    at = datetime.fromisoformat(moment)
    for name in ("happens_at", "expires_at", "valid_from"):
        with pytest.raises(ValidationFailed):
            await here.add(user.id, "The world is made or ends", **{name: at})
    kept = (await here.add(user.id, "The dentist is on Friday")).memory
    with pytest.raises(ValidationFailed):
        await here.memories.edit(user.id, kept.id, version=1, happens_at=at, actor="user")
    with pytest.raises(ValidationFailed):
        await here.memories.edit(user.id, kept.id, version=1, expires_at=at, actor="user")


async def test_saying_it_again_counts_for_the_memory_that_stands(
    here: Remembering, user: User
) -> None:
    first = await here.add(user.id, "Ada lives in Vienna")
    await here.live(user.id, 3)
    before = (await here.memories.explain(user.id, first.memory.id)).score
    repetitions = (
        "Ada lives in Vienna", "ada  lives in VIENNA!", "Ada lives in Vienna.",
        "Ada is living in Vienna",
    )  # fmt: skip
    for count, again in enumerate(repetitions, 1):
        second = await here.add(user.id, again)
        assert second.outcome == "reinforced"
        assert second.memory.id == first.memory.id
        assert (second.memory.mention_count, second.memory.use_day_accessed) == (count, 3)
        assert second.memory.importance > before
        event = (await here.memories.history(user.id, first.memory.id))[-1]
        assert event.kind == "reinforced"
        assert event.after is not None
        assert isinstance(event.after.evidence, Evidence)
        assert event.after.evidence.source == "user"
    await here.agrees(user.id)


async def test_a_text_that_differs_in_a_number_a_name_or_a_not_is_no_repetition(
    here: Remembering, user: User
) -> None:
    for old, new in (
        ("Ada's flight to Rome leaves on May 3", "Ada's flight to Rome leaves on May 4"),
        ("Ada likes to eat fish", "Ada does not like to eat fish"),
        ("Anna has a small brown dog", "Hanna has a small brown dog"),
        ("Ada works at Google", "Ada works at Google in Zurich"),
    ):
        assert (await here.add(user.id, old)).outcome == "created"
        assert (await here.add(user.id, new)).outcome == "created"


async def test_a_repetition_with_another_date_is_a_memory_of_its_own(
    here: Remembering, user: User
) -> None:
    first, second = here.clock.now() + DAY, here.clock.now() + 8 * DAY
    await here.add(user.id, "Ada sees the dentist", happens_at=first)
    again = await here.add(user.id, "Ada sees the dentist", happens_at=second)
    undated = await here.add(user.id, "Ada sees the dentist")
    assert (again.outcome, undated.outcome) == ("created", "reinforced")


async def test_a_repetition_fills_in_the_date_that_was_missing(
    here: Remembering, user: User
) -> None:
    await here.add(user.id, "Ada sees the dentist")
    again = await here.add(user.id, "Ada sees the dentist", happens_at=here.clock.now() + DAY)
    assert again.outcome == "reinforced"
    assert again.memory.happens_at == here.clock.now() + DAY


async def test_identical_memories_that_race_leave_one_that_counts_them_all(
    here: Remembering, user: User
) -> None:
    outcomes: list[str] = []

    async def add(text: str) -> None:
        outcomes.append((await here.add(user.id, text)).outcome)

    async with anyio.create_task_group() as group:
        for n in range(12):
            group.start_soon(add, "Ada keeps two cats at home" + "." * (n % 3))
    [memory] = await here.memories.page(user.id)
    assert sorted(outcomes) == ["created"] + ["reinforced"] * 11
    assert memory.mention_count == 11
    await here.agrees(user.id)


async def test_what_replaces_a_memory_closes_it_and_is_linked_with_it(
    here: Remembering, user: User
) -> None:
    old = (await here.add(user.id, "Ada lives in Vienna")).memory
    moved = here.clock.now() + 30 * DAY
    here.clock.advance(40 * 86_400)
    new = await here.add(
        user.id, "Ada lives in Berlin", supersedes=(old.short_id,), valid_from=moved
    )
    assert (new.outcome, new.superseded) == ("superseding", (old.id,))
    closed = await here.memories.get(user.id, old.id)
    assert (closed.valid_to, closed.superseded_by) == (moved, new.memory.id)
    [link] = await here.memories.links(user.id, old.id)
    assert (link.memory.id, link.link.type, link.direction) == (new.memory.id, "supersedes", "in")
    kinds = [event.kind for event in await here.memories.history(user.id, old.id)]
    assert kinds == ["created", "superseded"]


async def test_what_was_closed_and_is_said_again_is_true_again_as_a_memory_of_its_own(
    here: Remembering, user: User
) -> None:
    old = (await here.add(user.id, "Ada lives in Vienna")).memory
    await here.add(user.id, "Ada lives in Berlin", supersedes=(old.id,))
    again = await here.add(user.id, "Ada lives in Vienna")
    assert again.outcome == "created"
    assert again.memory.id != old.id


async def test_refs_that_name_nothing_are_told_and_stop_nothing(
    here: Remembering, user: User, other: User
) -> None:
    foreign = (await here.add(other.id, "Bob lives in Paris")).memory
    stored = await here.add(
        user.id, "Ada lives in Vienna",
        supersedes=("mem_00000000", foreign.id), related=((foreign.short_id, "friend"), ("", "?")),
    )  # fmt: skip
    assert stored.outcome == "created"
    assert set(stored.unknown) == {"mem_00000000", str(foreign.id), foreign.short_id, ""}
    assert (await here.memories.get(other.id, foreign.id)).superseded_by is None


async def test_a_related_memory_is_linked_with_the_reason_given(
    here: Remembering, user: User
) -> None:
    dog = (await here.add(user.id, "Ada has a dog called Rex")).memory
    vet = await here.add(user.id, "The vet is Dr. Weiss", related=((dog.short_id, "treats him"),))
    [link] = await here.memories.links(user.id, vet.memory.id)
    assert (link.memory.id, link.link.reason, link.link.type) == (dog.id, "treats him", "other")
    assert (await here.memories.get(user.id, dog.id)).importance > dog.importance


async def test_an_edit_needs_the_version_that_was_read_and_is_found_under_its_new_words(
    here: Remembering, user: User
) -> None:
    memory = (await here.add(user.id, "Ada lives in Vienna")).memory
    edited = await here.memories.edit(
        user.id, memory.id, version=1, text="Ada plays the cello", actor="user"
    )
    assert (edited.version, edited.text) == (2, "Ada plays the cello")
    with pytest.raises(Conflict):
        await here.memories.edit(
            user.id, memory.id, version=1, text="too late, too late", actor="user"
        )
    assert await here.texts(user.id, "who plays an instrument?") == ["Ada plays the cello"]
    [hit] = await here.find(user.id, "Vienna")
    assert "lexical" not in hit.lanes
    await here.agrees(user.id)


async def test_an_archived_memory_is_never_found_and_a_restored_one_is(
    here: Remembering, user: User
) -> None:
    memory = (await here.add(user.id, "Ada lives in Vienna", about=[("Ada", "PERSON")])).memory
    await here.memories.archive(user.id, memory.id, actor="user")
    assert await here.texts(user.id, "Ada lives in Vienna", entities=("Ada",)) == []
    assert await here.memories.page(user.id) == []
    assert texts_of(await here.memories.page(user.id, status="archived")) == [memory.text]
    await here.agrees(user.id)
    await here.memories.restore(user.id, memory.short_id, actor="user")
    assert await here.texts(user.id, "Ada lives in Vienna") == [memory.text]
    await here.agrees(user.id)


async def test_a_turn_counts_the_use_of_a_memory_once_and_surfacing_counts_for_nothing(
    here: Remembering, user: User, other: User
) -> None:
    memory = (await here.add(user.id, "Ada lives in Vienna")).memory
    turn = await here.turn(user.id)
    for _ in range(5):
        await here.find(user.id, "Where does Ada live?")
    assert await here.memories.get(user.id, memory.id) == memory
    assert await here.memories.used(user.id, [memory.id, memory.id], turn_id=turn) == [memory.id]
    assert await here.memories.used(user.id, [memory.id], turn_id=turn) == []
    assert await here.memories.used(other.id, [memory.id], turn_id=turn) == []
    counted = await here.memories.get(user.id, memory.id)
    assert (counted.access_count, counted.use_day_accessed, counted.version) == (1, 0, 1)
    assert counted.importance > memory.importance


async def test_a_touch_is_a_mention_once_a_turn(here: Remembering, user: User) -> None:
    memory = (await here.add(user.id, "Ada lives in Vienna")).memory
    turn = await here.turn(user.id)
    for _ in range(3):
        await here.memories.touch(user.id, memory.id, turn_id=turn, actor="model")
    touched = await here.memories.touch(user.id, memory.id, actor="user")
    assert (touched.mention_count, touched.access_count) == (2, 0)


async def test_merging_makes_one_memory_with_all_that_the_sources_had(
    here: Remembering, user: User
) -> None:
    friend = (await here.add(user.id, "Grace is a friend of Ada")).memory
    one = (await here.add(user.id, "Ada has a dog", about=[("Ada", "PERSON")])).memory
    two = (await here.add(user.id, "Ada's dog is called Rex", about=[("Rex", "OTHER")])).memory
    await here.memories.link(user.id, friend.id, one.id, "contextualizes", actor="model")
    await here.memories.link(user.id, two.id, friend.id, "other", reason="walks him", actor="model")
    await here.memories.link(user.id, one.id, two.id, "refines", actor="model")
    merged = await here.memories.merge(
        user.id, [one.id, two.short_id], "Ada has a dog called Rex", actor="consolidation"
    )
    assert {e.name for e in merged.entities} == {"Ada", "Rex"}
    assert merged.source_memories == (one.id, two.id)
    linked = await here.memories.links(user.id, merged.id)
    assert {(x.direction, x.link.type, x.memory.id) for x in linked} == {
        ("in", "contextualizes", friend.id), ("out", "other", friend.id),
    }  # fmt: skip
    for source in (one, two):
        gone = await here.memories.get(user.id, source.id)
        assert (gone.status, gone.superseded_by) == ("archived", merged.id)
        assert await here.memories.links(user.id, source.id) == []
    with pytest.raises(Conflict):
        await here.memories.merge(user.id, [one.id, merged.id], "Ada and her dog Rex", actor="user")
    with pytest.raises(NotFound, match="mem_00000000"):
        await here.memories.merge(
            user.id, [merged.id, "mem_00000000"], "no such thing", actor="user"
        )
    with pytest.raises(ValidationFailed):
        await here.memories.merge(
            user.id, [merged.id, merged.short_id], "only one thing", actor="user"
        )
    await here.agrees(user.id)


async def test_a_memory_cannot_take_the_place_of_what_took_its_own(
    here: Remembering, user: User
) -> None:
    a, b, c = [
        (await here.add(user.id, text)).memory.id
        for text in ("Ada lives in Vienna", "The car is green", "Rex sleeps outside")
    ]
    await here.memories.supersede(user.id, a, b, actor="user")
    await here.memories.supersede(user.id, b, c, actor="user")
    for old, new in ((c, a), (a, c), (c, c)):
        with pytest.raises(Conflict):
            await here.memories.supersede(user.id, old, new, actor="user")


async def test_links_are_followed_both_ways_to_a_depth_of_three_the_strongest_first(
    here: Remembering, user: User
) -> None:
    texts = ["Ada lives in Vienna", "The car is green", "Rex sleeps outside", "It rains on Monday",
             "Grace plays chess well"]  # fmt: skip
    ids = [(await here.add(user.id, text)).memory.id for text in texts]
    link = here.memories.link
    await link(user.id, ids[0], ids[1], "refines", actor="model")
    await link(user.id, ids[2], ids[1], "causes", actor="model")
    await link(user.id, ids[2], ids[3], "other", actor="model")
    await link(user.id, ids[3], ids[4], "other", actor="model")
    await link(user.id, ids[4], ids[0], "shares_entity", confidence=0.5, actor="model")

    async def found(depth: int) -> list[tuple[str, int, float]]:
        linked = await here.memories.links(user.id, ids[0], depth=depth)
        return [(x.memory.text, x.depth, round(x.weight, 3)) for x in linked]

    assert await found(1) == [(texts[1], 1, 0.8), (texts[4], 1, 0.2)]
    assert await found(3) == [
        (texts[1], 1, 0.8), (texts[2], 2, 0.64), (texts[3], 3, 0.32), (texts[4], 1, 0.2),
    ]  # fmt: skip
    assert await found(9) == await found(3)
    with pytest.raises(ValidationFailed):
        await link(user.id, ids[0], ids[0], "other", actor="model")


async def test_a_merge_of_what_was_read_before_it_was_changed_is_refused(
    here: Remembering, user: User
) -> None:
    one = (await here.add(user.id, "Ada has a dog")).memory
    two = (await here.add(user.id, "Ada's dog is called Rex")).memory
    versions = {one.id: one.version, two.id: two.version}
    await here.memories.edit(
        user.id, two.id, version=two.version, text="Ada's dog is called Max", actor="user"
    )
    with pytest.raises(Conflict):
        await here.memories.merge(
            user.id, [one.id, two.id], "Ada has a dog called Rex", actor="consolidation",
            versions=versions,
        )  # fmt: skip
    with pytest.raises(Conflict):
        await here.memories.archive(user.id, two.id, actor="review", version=two.version)
    assert await here.texts(user.id, "dog Max") == ["Ada's dog is called Max", "Ada has a dog"]


async def test_a_deleted_memory_leaves_its_account_but_not_one_of_its_words(
    here: Remembering, user: User, database: Database
) -> None:
    friend = (await here.add(user.id, "Grace is a friend of Ada")).memory
    secret = (
        await here.add(user.id, "Zanzibar is where Xerxes hides", about=[("Xerxes", "PERSON")])
    ).memory
    await here.add(user.id, "zanzibar is where xerxes hides!")
    await here.memories.annotate(user.id, secret.id, "about zanzibar again", author="user")
    await here.memories.link(
        user.id, friend.id, secret.id, "other", reason="zanzibar trip", actor="model"
    )
    await here.memories.edit(
        user.id, secret.id, version=1, text="Xerxes left Zanzibar", actor="user"
    )
    await here.find(user.id, "Where is Xerxes?")
    await here.memories.delete(user.id, secret.id, actor="user")
    with pytest.raises(NotFound):
        await here.memories.get(user.id, secret.id)
    kinds = [e.kind for e in await here.memories.history(user.id, secret.id)]
    assert kinds == ["created", "reinforced", "annotated", "edited", "deleted"]
    async with database.user(user.id) as tx:
        tables = await tx.fetch(
            "select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid "
            "where a.attname = 'user_id' and c.relkind = 'r' "
            "and c.relnamespace = 'public'::regnamespace and has_table_privilege(c.oid, 'select') "
            "and c.relname <> 'retrieval_traces'"
        )
        for row in tables:
            held = await tx.value(
                f"select string_agg(t::text, ' ') from {row['relname']} t where user_id = $1",  # noqa: S608
                user.id,
            )
            for word in ("zanzibar", "xerxes"):
                assert word not in (held or "").lower(), row["relname"]
    await here.agrees(user.id)


async def test_nobody_reaches_a_memory_of_somebody_else(
    here: Remembering, user: User, other: User
) -> None:
    mine = (await here.add(user.id, "Ada lives in Vienna", about=[("Ada", "PERSON")])).memory
    theirs = (await here.add(other.id, "Bob lives in Paris")).memory
    event = (await here.memories.history(user.id, mine.id))[0]
    m, him = here.memories, other.id
    for ref in (mine.id, mine.short_id):
        for attempt in (
            m.get(him, ref), m.archive(him, ref, actor="user"), m.restore(him, ref, actor="user"),
            m.delete(him, ref, actor="user"), m.touch(him, ref, actor="user"),
            m.edit(him, ref, version=1, text="stolen, stolen", actor="user"),
            m.annotate(him, ref, "seen", author="user"), m.annotations(him, ref),
            m.links(him, ref), m.explain(him, ref), m.graph(him, around=ref), m.history(him, ref),
            m.link(him, theirs.id, ref, "other", actor="user"),
            m.unlink(him, theirs.id, ref, "other", actor="user"),
            m.merge(him, [theirs.id, ref], "Bob and Ada, stolen", actor="user"),
            m.supersede(him, ref, theirs.id, actor="user"),
            m.supersede(him, theirs.id, ref, actor="user"),
        ):  # fmt: skip
            with pytest.raises(NotFound):
                await attempt
    with pytest.raises(NotFound):
        await m.undo(him, event.id)
    [entity] = await m.entities(user.id)
    with pytest.raises(NotFound):
        await m.merge_entities(him, entity.id, [entity.id], actor="user")
    assert await m.entities(him) == []
    assert texts_of(await m.page(him)) == [theirs.text]
    assert (await m.graph(him)).entities == ()
    assert await here.texts(him, "Ada lives in Vienna", entities=("Ada",)) == [theirs.text]
    assert await m.get(user.id, mine.id) == mine


async def test_pages_go_on_where_the_last_one_ended(here: Remembering, user: User) -> None:
    texts = ["Ada lives in Vienna", "The car is green", "Rex sleeps outside", "Grace plays chess"]
    for text in texts:
        await here.add(user.id, text)
        here.clock.advance(60)
    turn = await here.turn(user.id)
    page = here.memories.page
    newest = await page(user.id, limit=3)
    rest = await page(user.id, before=(newest[-1].created_at, newest[-1].id), limit=3)
    assert texts_of(newest + rest) == texts[::-1]
    await here.memories.used(user.id, [rest[0].id], turn_id=turn)
    first = await page(user.id, order="importance", limit=1)
    others = await page(user.id, order="importance", before=(first[0].importance, first[0].id))
    assert first[0].text == texts[0]
    assert {m.text for m in others} == set(texts[1:])


async def test_a_memory_without_a_vector_is_found_by_its_words(
    database: Database, user: User
) -> None:
    here = Remembering(database, OneEncoder(None))
    await here.add(user.id, "Ada lives in Vienna")
    assert (await here.add(user.id, "ada lives in vienna")).outcome == "reinforced"
    ranking = await here.memories.search(user.id, RecallQuery(phrases=("Vienna",)))
    assert [hit.memory.text for hit in ranking.hits] == ["Ada lives in Vienna"]
    assert ranking.dense == "no vectors yet"


async def test_a_batch_is_stored_in_the_callers_transaction_or_not_at_all(
    here: Remembering, user: User, database: Database
) -> None:
    news = [NewMemory(text=t, source="extraction") for t in ("Ada lives in Vienna", "Ada has a dog",
                                                            "Ada lives in Vienna!")]  # fmt: skip
    ready = await here.memories.prepare(user.id, news)

    async def stopped_before_its_commit() -> None:
        async with database.user(user.id) as tx:
            await here.memories.store(tx, user.id, ready, actor="extraction")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await stopped_before_its_commit()
    assert await here.memories.page(user.id) == []
    async with database.user(user.id) as tx:
        stored = await here.memories.store(tx, user.id, ready, actor="extraction")
    assert [s.outcome for s in stored] == ["created", "created", "reinforced"]
    assert len({s.event_id for s in stored}) == 3
    await here.agrees(user.id)
