"""Every change of a user's memories.

Changes run as steps (see steps.py): under the user's lock, with their account, all or nothing. A
memory is named by its id or its short id; one of another user is NotFound, as one that never was.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from msgspec import UNSET, UnsetType

from mira.clock import Clock
from mira.errors import Conflict, ValidationFailed
from mira.ids import Ids
from mira.memory import merging, storing
from mira.memory.encoding import Encoders
from mira.memory.entities import Mention
from mira.memory.journal import Journal
from mira.memory.model import (
    LONGEST_REASON,
    NewMemory,
    Prepared,
    Ref,
    Stored,
    Undone,
    checked_annotation,
    checked_text,
    checked_time,
    named,
)
from mira.memory.steps import Steps
from mira.memory.terms import clean, term_frequencies
from mira.store import (
    entities,
    memories,
    memory_events,
    memory_links,
    memory_scores,
)
from mira.store.database import Database, Tx
from mira.store.entities import EntityView
from mira.store.memories import Memory
from mira.store.memory_events import (
    Actor,
    Annotation,
    Fields,
    Link,
    LinkType,
)


class Recogniser(Protocol):
    """Finds names in texts. See mira.memory.recogniser."""

    async def entities(self, text: str) -> Sequence[Mention]: ...


class Changes:
    """The half of Memories that writes. Safe to use from many tasks at once."""

    def __init__(
        self, database: Database, encoders: Encoders, recogniser: Recogniser | None, clock: Clock,
        ids: Ids,
    ) -> None:  # fmt: skip
        self._database = database
        self._recogniser = recogniser
        self._clock = clock
        self._ids = ids
        self._steps = Steps(database, encoders, clock, ids)

    # Writing.

    async def create(
        self, user_id: UUID, new: NewMemory, *, actor: Actor, turn_id: UUID | None = None
    ) -> Stored:
        """Remember one fact. Raises ValidationFailed."""
        ready = await self.prepare(user_id, [new])
        async with self._database.user(user_id) as tx:
            [stored] = await self.store(tx, user_id, ready, actor=actor, turn_id=turn_id)
        return stored

    async def prepare(self, user_id: UUID, news: Sequence[NewMemory]) -> list[Prepared]:
        """Check and encode facts, outside of any transaction. Raises as `create` does."""
        texts = [checked_text(new.text) for new in news]
        for new in news:
            for name in ("happens_at", "expires_at", "valid_from"):
                checked_time(name, getattr(new, name))
        encoded = await self._steps.encode(user_id, texts)
        return [
            Prepared(
                new=new, text=text, terms=term_frequencies(text), vectors=encoded.get(text, {}),
                entities=named(new.entities, await self._names(text)),
            )
            for new, text in zip(news, texts, strict=True)
        ]  # fmt: skip

    async def store(
        self, tx: Tx, user_id: UUID, news: Sequence[Prepared], *, actor: Actor,
        turn_id: UUID | None = None,
    ) -> list[Stored]:  # fmt: skip
        """Store prepared facts in the caller's transaction, each a step of its own, in order.

        What repeats a standing memory reinforces it; what supersedes others closes them.
        """
        stored = []
        for one in news:
            journal = await self._steps.begin(
                tx, user_id, {one.text: one.vectors}, actor=actor, turn_id=turn_id
            )
            stored.append(await storing.store(journal, one, turn_id))
            await journal.write()
        return stored

    async def edit(
        self, user_id: UUID, ref: Ref, *, version: int, text: str | None = None,
        happens_at: datetime | UnsetType | None = UNSET,
        expires_at: datetime | UnsetType | None = UNSET,
        actor: Actor, turn_id: UUID | None = None,
    ) -> Memory:  # fmt: skip
        """Change text or dates. Raises NotFound, Conflict (changed since `version`)."""
        kept = UNSET if text is None else checked_text(text)
        for name, at in (("happens_at", happens_at), ("expires_at", expires_at)):
            if at is not UNSET:
                checked_time(name, at)

        async def act(journal: Journal, memory: Memory) -> None:
            memories.expect_version(memory, version)
            fields = Fields(text=kept, happens_at=happens_at, expires_at=expires_at)
            await journal.change("edited", memory, fields)

        texts = [] if kept is UNSET else [kept]
        return await self._one(user_id, ref, act, actor=actor, turn_id=turn_id, texts=texts)

    async def archive(
        self, user_id: UUID, ref: Ref, *, actor: Actor, turn_id: UUID | None = None,
        version: int | None = None,
    ) -> Memory:  # fmt: skip
        """Take a memory out of every search; nothing if it is archived. Raises NotFound, and
        Conflict if it was changed since `version`, if that is given."""

        async def act(journal: Journal, memory: Memory) -> None:
            if version is not None:
                memories.expect_version(memory, version)
            await journal.change("archived", memory, Fields(status="archived"))

        return await self._one(user_id, ref, act, actor=actor, turn_id=turn_id)

    async def restore(
        self, user_id: UUID, ref: Ref, *, actor: Actor, turn_id: UUID | None = None
    ) -> Memory:
        """Take a memory back from the archive; nothing if it is active. Raises NotFound."""

        async def act(journal: Journal, memory: Memory) -> None:
            await journal.change("restored", memory, Fields(status="active"))

        return await self._one(user_id, ref, act, actor=actor, turn_id=turn_id)

    async def delete(
        self, user_id: UUID, ref: Ref, *, actor: Actor, turn_id: UUID | None = None
    ) -> None:
        """Remove a memory for good, with its words in the index, in annotations and in the account
        of what happened. Cannot be undone. Raises NotFound."""

        async def act(journal: Journal) -> None:
            await journal.delete(await memories.get(journal.tx, user_id, ref))

        await self._steps.run(user_id, act, actor=actor, turn_id=turn_id)

    async def touch(
        self, user_id: UUID, ref: Ref, *, turn_id: UUID | None = None, actor: Actor
    ) -> Memory:
        """Say that a memory matters: one more mention. Once a turn is enough. Raises NotFound."""

        async def act(journal: Journal, memory: Memory) -> None:
            if turn_id is None or not await memory_events.happened(
                journal.tx, user_id, memory.id, "touched", turn_id
            ):
                use_day = await memories.use_days(journal.tx, user_id)
                await journal.count("touched", memory, use_day)

        return await self._one(user_id, ref, act, actor=actor, turn_id=turn_id)

    async def used(self, user_id: UUID, ids: Sequence[UUID], *, turn_id: UUID) -> list[UUID]:
        """These memories were of use in a turn: counted once a turn each. Returns the counted.

        No step: what is used changes nothing of what is remembered.
        """
        async with self._database.user(user_id) as tx:
            use_day = await memories.use_days(tx, user_id)
            counted = await memories.used(tx, user_id, ids, turn_id, use_day)
            await memory_scores.refresh(tx, user_id, counted, self._clock.now())
        return counted

    async def link(
        self, user_id: UUID, from_ref: Ref, to_ref: Ref, type: LinkType, *,  # noqa: A002
        reason: str = "",
        confidence: float = 1.0, actor: Actor, turn_id: UUID | None = None,
    ) -> Link:  # fmt: skip
        """Link two memories; nothing if they are linked so already. What is said to supersede
        another also closes it, as `supersede` does: at the moment from which the other is true, if
        that is the later one, or else now.

        Raises NotFound, ValidationFailed (a memory to itself, a confidence outside 0…1), Conflict.
        """
        if not 0 <= confidence <= 1:
            raise ValidationFailed("A confidence lies between 0 and 1.", (("confidence", ""),))
        words = clean(reason).strip()[:LONGEST_REASON]

        async def act(journal: Journal) -> Link:
            one, other = await self._both(journal.tx, user_id, from_ref, to_ref)
            if one == other:
                raise ValidationFailed("A memory is not linked to itself.")
            link = Link(
                from_id=one, to_id=other, type=type, reason=words, confidence=confidence,
                created_at=journal.now,
            )  # fmt: skip
            if not await journal.link(link):
                return await memory_links.get(journal.tx, user_id, one, other, type)
            if type == "supersedes":
                await self._close(journal, other, one, None)
            await memory_scores.refresh(journal.tx, user_id, [other], journal.now)
            return await memory_links.get(journal.tx, user_id, one, other, type)

        return await self._steps.run(user_id, act, actor=actor, turn_id=turn_id)

    async def unlink(
        self, user_id: UUID, from_ref: Ref, to_ref: Ref, type: LinkType, *,  # noqa: A002
        actor: Actor, turn_id: UUID | None = None,
    ) -> None:  # fmt: skip
        """Remove a link. Raises NotFound."""

        async def act(journal: Journal) -> None:
            one, other = await self._both(journal.tx, user_id, from_ref, to_ref)
            await journal.unlink(await memory_links.get(journal.tx, user_id, one, other, type))
            await memory_scores.refresh(journal.tx, user_id, [other], journal.now)

        await self._steps.run(user_id, act, actor=actor, turn_id=turn_id)

    async def annotate(
        self, user_id: UUID, ref: Ref, text: str, *, author: str, turn_id: UUID | None = None
    ) -> Annotation:
        """Put a remark beside a memory; `author` is user, model or review. Raises NotFound."""
        if author not in ("user", "model", "review"):
            raise ValidationFailed("An annotation is by user, model or review.")
        made = Annotation(
            id=self._ids.new(), author=author,  # type: ignore[arg-type]
            text=checked_annotation(text), at=self._clock.now(),
        )  # fmt: skip

        async def act(journal: Journal, memory: Memory) -> None:
            await journal.annotate(memory.id, made)

        actor: Actor = author  # type: ignore[assignment]
        await self._one(user_id, ref, act, actor=actor, turn_id=turn_id)
        return made

    async def merge(
        self, user_id: UUID, refs: Sequence[Ref], text: str, *, actor: Actor,
        turn_id: UUID | None = None, versions: Mapping[UUID, int] | None = None,
    ) -> Memory:  # fmt: skip
        """Make one memory of several; the sources are archived. See merging.merge. `versions` are
        those that `text` was made of: Conflict if one of them was changed since."""
        kept = checked_text(text)

        async def act(journal: Journal) -> Memory:
            tx = journal.tx
            ids = merging.all_found(refs, await memories.resolve(tx, user_id, refs))
            sources = await memories.find(tx, user_id, ids)
            for one in ids:
                if versions is not None and one in versions:
                    memories.expect_version(sources[one], versions[one])
            made = await merging.merge(journal, [sources[one] for one in ids], kept, turn_id)
            return await memories.get(tx, user_id, made)

        return await self._steps.run(user_id, act, actor=actor, turn_id=turn_id, texts=[kept])

    async def supersede(
        self, user_id: UUID, old_ref: Ref, new_ref: Ref, *, at: datetime | None = None,
        actor: Actor, turn_id: UUID | None = None,
    ) -> Memory:  # fmt: skip
        """Close a memory at `at` (now) in favour of another; returns the closed one.

        Raises NotFound, Conflict if it is closed already or the other leads back to it.
        """
        checked_time("at", at)

        async def act(journal: Journal) -> Memory:
            tx = journal.tx
            old_id, new_id = await self._both(tx, user_id, old_ref, new_ref)
            await self._close(journal, old_id, new_id, at or journal.now)
            await memory_scores.refresh(tx, user_id, [old_id], journal.now)
            return await memories.get(tx, user_id, old_id)

        return await self._steps.run(user_id, act, actor=actor, turn_id=turn_id)

    async def _close(
        self, journal: Journal, old_id: UUID, new_id: UUID, at: datetime | None
    ) -> None:
        tx, user_id = journal.tx, journal.user_id
        found = await memories.find(tx, user_id, [old_id, new_id])
        old, new = found[old_id], found[new_id]
        if old.superseded_by is not None:
            raise Conflict(f"{old.short_id} has been superseded already.")
        later = await memories.successors_of(tx, user_id, [new_id])
        if old_id == new_id or old_id in later.get(new_id, ()):
            raise Conflict("A memory cannot supersede what it was superseded by.")
        if at is None:
            at = new.valid_from if new.valid_from > old.valid_from else journal.now
        await storing.supersede(journal, old, new_id, at)

    async def merge_entities(
        self, user_id: UUID, into: UUID, others: Sequence[UUID], *, actor: Actor,
        turn_id: UUID | None = None,
    ) -> EntityView:  # fmt: skip
        """Let one entity stand for others too. Raises NotFound, ValidationFailed (other types)."""

        async def act(journal: Journal) -> EntityView:
            await merging.merge_entities(journal, into, others)
            [now] = await entities.follow(journal.tx, user_id, [into])
            return await entities.get(journal.tx, user_id, now)

        return await self._steps.run(user_id, act, actor=actor, turn_id=turn_id)

    async def undo(
        self, user_id: UUID, event_id: UUID, *, actor: Actor = "user", turn_id: UUID | None = None
    ) -> Undone:
        """Take back the whole step of an event, in a step of its own that can be undone too.

        Raises NotFound; Conflict if it was undone already, was a deletion, or if something that
        it changed has been changed since. Nothing is changed then.
        """

        async def act(journal: Journal) -> Undone:
            tx = journal.tx
            event = await memory_events.get(tx, user_id, event_id)
            if event.undone_by is not None:
                raise Conflict("This has been undone already.")
            done = await memory_events.of_step(tx, user_id, event.step)
            for one in reversed(done):
                await journal.invert(one)
            await memory_events.mark_undone(tx, user_id, event.step, journal.step)
            await memory_events.unmark_undone(tx, user_id, event.step)
            touched = list({one.memory_id for one in done})
            await memory_scores.refresh(tx, user_id, touched, journal.now)
            return Undone(step=journal.step, events=tuple(journal.events))

        return await self._steps.run(user_id, act, actor=actor, turn_id=turn_id)

    # Helpers.

    async def _names(self, text: str) -> Sequence[Mention]:
        return () if self._recogniser is None else await self._recogniser.entities(text)

    async def _one(
        self, user_id: UUID, ref: Ref, act: Callable[[Journal, Memory], Awaitable[None]], *,
        actor: Actor, turn_id: UUID | None, texts: Sequence[str] = (),
    ) -> Memory:  # fmt: skip
        """Run a step on one memory; return it as it stands then. Raises NotFound."""

        async def step(journal: Journal) -> Memory:
            memory = await memories.get(journal.tx, user_id, ref)
            await act(journal, memory)
            await memory_scores.refresh(journal.tx, user_id, [memory.id], journal.now)
            return await memories.get(journal.tx, user_id, memory.id)

        return await self._steps.run(user_id, step, actor=actor, turn_id=turn_id, texts=texts)

    async def _both(self, tx: Tx, user_id: UUID, one: Ref, other: Ref) -> tuple[UUID, UUID]:
        known = await memories.resolve(tx, user_id, [one, other])
        merging.all_found([one, other], known)
        return known[one], known[other]
