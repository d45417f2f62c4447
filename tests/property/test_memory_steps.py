"""Random changes of memories and undos of them, against a model of plain dictionaries.

The model knows nothing of events: it keeps, for each step, the values that the step changed, before
and after. A step can be undone if every one of them still has the value after. Whatever was done,
the index must hold exactly the active memories.
"""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from mira.errors import Conflict
from mira.ids import SystemIds
from mira.store.database import Database
from mira.store.users import ensure_user
from tests.conftest import EPOCH, Place
from tests.support.memory import OneEncoder, Remembering, real_encoders

#: Nothing like each other, so that none repeats another.
SUBJECTS = (
    "Ada plays the cello", "The green car needs oil", "Rex sleeps outside at night",
    "Rain is expected in Bergen", "Grace collects old stamps", "The rent is due on Friday",
    "Tom is allergic to peanuts", "A telescope stands on the roof",
)  # fmt: skip

Key = tuple[Any, ...]
Values = dict[Key, Any]

actions = st.lists(
    st.tuples(
        st.sampled_from(
            ["create", "create", "replace", "edit", "archive", "restore", "link", "unlink", "merge",
             "supersede", "annotate", "undo", "undo"]
        ),
        st.integers(0, 999),
        st.integers(0, 999),
    ),
    min_size=4, max_size=24,
)  # fmt: skip


class Model:
    """What is expected to stand, and what each step changed."""

    def __init__(self) -> None:
        self.values: Values = {}
        self.steps: list[tuple[UUID, Values, Values]] = []
        self.memories: list[UUID] = []

    def text(self, one: UUID) -> str:
        return str(self.values["text", one])

    def present(self) -> list[UUID]:
        return [one for one in self.memories if ("text", one) in self.values]

    def active(self) -> list[UUID]:
        return [one for one in self.present() if self.values["status", one] == "active"]

    def links(self) -> list[Key]:
        return [key for key in self.values if key[0] == "link"]

    def apply(self, event: UUID, changes: Values) -> None:
        """Set values (None: there is none) and remember the step; nothing if nothing changes."""
        before = {key: self.values.get(key) for key in changes}
        if before != changes:
            self.steps.append((event, before, changes))
            self._set(changes)

    def may_undo(self, before: Values, after: Values) -> bool:
        if any(self.values.get(key) != value for key, value in after.items()):
            return False
        created = {key[1] for key in after if key[0] == "text" and before[key] is None}
        gone = {key[1] for key in after if key[0] == "text" and after[key] is None}
        left = [key for key in self.values if key not in after]
        # Nothing that came later may hang on a memory that is to go, nor a link on one that went.
        if any(key[0] in ("link", "note") and created & set(key[1:3]) for key in left):
            return False
        # Nor has one been superseded that is to go, though the link that says so was taken away.
        if any(key[0] == "by" and created & {key[1], self.values[key]} for key in left):
            return False
        back = {
            part for key, value in before.items() if value and key[0] == "link" for part in key[1:3]
        }
        return all(("text", one) in self.values or one in gone for one in back)

    def undo(self, at: int, event: UUID) -> None:
        _, before, after = self.steps.pop(at)
        self._set(before)
        self.steps.append((event, after, before))

    def _set(self, changes: Values) -> None:
        for key, value in changes.items():
            if value is None:
                self.values.pop(key, None)
            else:
                self.values[key] = value


class Play:
    """One sequence of actions on a user of its own."""

    def __init__(self, here: Remembering, user: UUID) -> None:
        self.here = here
        self.user = user
        self.model = Model()
        self.count = 0

    async def run(self, sequence: list[tuple[str, int, int]]) -> None:
        for name, a, b in sequence:
            await getattr(self, f"_{name}")(a, b)
            await self._same()
        await self.here.agrees(self.user)

    def _fresh(self, n: int) -> str:
        self.count += 1
        return f"{SUBJECTS[n % len(SUBJECTS)]} since day {self.count}"

    def _pick(self, n: int, among: list[UUID]) -> UUID | None:
        return among[n % len(among)] if among else None

    async def _newest(self) -> UUID:
        async with self.here.database.user(self.user) as tx:
            found: UUID = await tx.value("select id from memory_events order by id desc limit 1")
        return found

    def _made(self, one: UUID, text: str) -> Values:
        self.model.memories.append(one)
        return {("text", one): text, ("status", one): "active"}

    async def _create(self, a: int, _: int) -> None:
        text = self._fresh(a)
        stored = await self.here.add(self.user, text)
        assert stored.outcome == "created"
        self.model.apply(stored.event_id, self._made(stored.memory.id, text))

    async def _replace(self, a: int, b: int) -> None:
        old = self._pick(b, self.model.present())
        text = self._fresh(a)
        stored = await self.here.add(self.user, text, supersedes=(old,) if old else ())
        changes = self._made(stored.memory.id, text)
        if old is not None and ("by", old) not in self.model.values:
            changes[("by", old)] = stored.memory.id
            changes[("link", stored.memory.id, old, "supersedes")] = True
        self.model.apply(stored.event_id, changes)

    async def _edit(self, a: int, b: int) -> None:
        one = self._pick(b, self.model.present())
        if one is not None:
            text = self._fresh(a)
            version = (await self.here.memories.get(self.user, one)).version
            await self.here.memories.edit(self.user, one, version=version, text=text, actor="user")
            self.model.apply(await self._newest(), {("text", one): text})

    async def _archive(self, a: int, _: int) -> None:
        if one := self._pick(a, self.model.present()):
            await self.here.memories.archive(self.user, one, actor="user")
            self.model.apply(await self._newest(), {("status", one): "archived"})

    async def _restore(self, a: int, _: int) -> None:
        if one := self._pick(a, self.model.present()):
            await self.here.memories.restore(self.user, one, actor="user")
            self.model.apply(await self._newest(), {("status", one): "active"})

    async def _link(self, a: int, b: int) -> None:
        one, two = self._pick(a, self.model.present()), self._pick(b, self.model.present())
        if one and two and one != two:
            await self.here.memories.link(self.user, one, two, "causes", actor="user")
            self.model.apply(await self._newest(), {("link", one, two, "causes"): True})

    async def _unlink(self, a: int, _: int) -> None:
        if links := self.model.links():
            _, one, two, kind = links[a % len(links)]
            await self.here.memories.unlink(self.user, one, two, kind, actor="user")
            self.model.apply(await self._newest(), {("link", one, two, kind): None})

    async def _annotate(self, a: int, _: int) -> None:
        if one := self._pick(a, self.model.present()):
            note = await self.here.memories.annotate(self.user, one, "noted", author="user")
            self.model.apply(await self._newest(), {("note", one, one, note.id): True})

    async def _merge(self, a: int, b: int) -> None:
        open_ = [one for one in self.model.active() if ("by", one) not in self.model.values]
        one, two = self._pick(a, open_), self._pick(b, open_)
        if one and two and one != two:
            text = self._fresh(a + b)
            merged = await self.here.memories.merge(self.user, [one, two], text, actor="user")
            changes = self._made(merged.id, text)
            for source in (one, two):
                changes |= {("status", source): "archived", ("by", source): merged.id}
            for key, value in self.model.values.items():
                if key[0] == "by" and value in (one, two):
                    changes[key] = merged.id
            for key in self.model.links():
                if {one, two} & set(key[1:3]):
                    changes[key] = None
                    ends = [merged.id if end in (one, two) else end for end in key[1:3]]
                    if ends[0] != ends[1]:
                        changes[("link", *ends, key[3])] = True
            self.model.apply(await self._newest(), changes)

    async def _supersede(self, a: int, b: int) -> None:
        old, new = self._pick(a, self.model.present()), self._pick(b, self.model.present())
        if old and new:
            later: list[UUID] = [new]
            while (by := self.model.values.get(("by", later[-1]))) is not None:
                later.append(by)
            allowed = ("by", old) not in self.model.values and old not in later
            try:
                await self.here.memories.supersede(self.user, old, new, actor="user")
                assert allowed
            except Conflict:
                assert not allowed
                return
            changes: Values = {("by", old): new, ("link", new, old, "supersedes"): True}
            self.model.apply(await self._newest(), changes)

    async def _undo(self, a: int, _: int) -> None:
        if not self.model.steps:
            return
        at = a % len(self.model.steps)
        event, before, after = self.model.steps[at]
        allowed = self.model.may_undo(before, after)
        try:
            done = await self.here.memories.undo(self.user, event)
            assert allowed
            self.model.undo(at, done.events[0].id)
        except Conflict:
            assert not allowed

    async def _same(self) -> None:
        """The database says what the model says."""
        async with self.here.database.user(self.user) as tx:
            rows = await tx.fetch("select id, text, status, superseded_by from memories")
            links = await tx.fetch("select from_id, to_id, type from memory_links")
            notes = await tx.fetch("select id, memory_id from memory_annotations")
        found: Values = {}
        for row in rows:
            found |= {("text", row["id"]): row["text"], ("status", row["id"]): row["status"]}
            if row["superseded_by"] is not None:
                found[("by", row["id"])] = row["superseded_by"]
        found |= {("link", r["from_id"], r["to_id"], r["type"]): True for r in links}
        found |= {("note", r["memory_id"], r["memory_id"], r["id"]): True for r in notes}
        assert found == self.model.values


def test_any_sequence_of_changes_and_undos_leaves_what_plain_dictionaries_say(
    place: Place,
) -> None:
    ids = SystemIds()

    async def play(
        database: Database, encoders: OneEncoder, sequence: list[tuple[str, int, int]]
    ) -> None:
        user = await ensure_user(database, ids.new(), f"u{ids.new().hex}", "UTC", EPOCH)
        await Play(Remembering(database, encoders), user.id).run(sequence)

    with asyncio.Runner() as runner:
        database = runner.run(Database.open(place.app, place.engine, size=2))
        entering = real_encoders()
        encoders = runner.run(entering.__aenter__())
        try:

            @settings(max_examples=30, phases=(Phase.explicit, Phase.generate))
            @given(sequence=actions)
            def example(sequence: list[tuple[str, int, int]]) -> None:
                runner.run(play(database, encoders, sequence))

            example()
        finally:
            runner.run(entering.__aexit__(None, None, None))
            runner.run(database.aclose())
