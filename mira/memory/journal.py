"""Changes of memories, each with its account.

A `Journal` is one step in one transaction, under the user's lock. Its methods change the rows, the
index and the account together; `invert` does the opposite of a change that was written, and
refuses if what it wrote has been changed since.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from msgspec import UNSET

from mira.errors import Conflict, NotFound
from mira.ids import Ids
from mira.memory.encoding import Encoded
from mira.memory.terms import term_frequencies
from mira.store import (
    entities,
    memories,
    memory_annotations,
    memory_events,
    memory_links,
    memory_scores,
    postings,
    vectors,
)
from mira.store.database import Tx
from mira.store.memories import Memory
from mira.store.memory_events import (
    Actor,
    Annotation,
    Counts,
    Evidence,
    Fields,
    Kind,
    Link,
    MemoryEvent,
    Record,
    State,
)
from mira.store.postings import Document
from mira.store.spaces import Source, Spaces


class Unencoded(Exception):
    """A text has to be indexed that nobody has encoded yet."""

    def __init__(self, text: str) -> None:
        super().__init__("a text is not encoded")
        self.text = text


class Journal:
    """One step. `write` what it did before the transaction ends."""

    def __init__(
        self, tx: Tx, user_id: UUID, spaces: Spaces | None, encoded: Encoded, *, actor: Actor,
        turn_id: UUID | None, ids: Ids, now: datetime,
    ) -> None:  # fmt: skip
        self.tx = tx
        self.user_id = user_id
        self.step = ids.new()
        self.now = now
        self.spaces = spaces
        self._encoded = encoded
        self._actor: Actor = actor
        self._turn_id = turn_id
        self.ids = ids
        self.events: list[MemoryEvent] = []

    async def write(self) -> None:
        """Write the account."""
        await memory_events.write(self.tx, self.user_id, self.events)

    # The changes.

    async def create(self, memory_id: UUID, record: Record, kind: Kind = "created") -> None:
        """Write a memory that is not there."""
        await memories.insert(self.tx, self.user_id, memory_id, record, self.now)
        await entities.assign(self.tx, self.user_id, memory_id, record.entities)
        if record.status == "active":
            await self._index(record.doc, record.text)
        self._note(memory_id, kind, None, State(record=record))

    async def change(self, kind: Kind, memory: Memory, fields: Fields) -> None:
        """Change some columns of a memory, and its place in the index with them."""
        before, after = _differing(memory, fields)
        if after == Fields():
            return
        await memories.change(self.tx, self.user_id, memory.id, after, self.now)
        text = memory.text if after.text is UNSET else after.text
        status = memory.status if after.status is UNSET else after.status
        if (text, status) != (memory.text, memory.status):
            if memory.status == "active":
                await self._unindex(memory)
            if status == "active":
                await self._index(memory.doc, text)
            if status == "active" and memory.status == "archived":
                # Else it would be forgotten again with the next day.
                await memory_scores.count_anew(self.tx, self.user_id, memory.id)
        self._note(memory.id, kind, State(fields=before), State(fields=after))

    async def count(
        self, kind: Kind, memory: Memory, use_day: int | None, evidence: Evidence | None = None,
        *, mentions: int = 1,
    ) -> None:  # fmt: skip
        """Note that a memory was said again or touched."""
        await memories.count(self.tx, self.user_id, memory.id, mentions=mentions, accessed=use_day)
        after = Counts(
            mention_count=max(0, memory.mention_count + mentions), use_day_accessed=use_day
        )
        self._note(
            memory.id, kind, State(counts=memories.counts_of(memory)),
            State(counts=after, evidence=UNSET if evidence is None else evidence),
        )  # fmt: skip

    async def link(self, link: Link, kind: Kind = "linked") -> bool:
        """Write an edge; False, and nothing, if it is there or leads from a memory to itself."""
        if link.from_id == link.to_id or not await memory_links.add(self.tx, self.user_id, link):
            return False
        self._note(link.from_id, kind, None, State(link=link))
        return True

    async def unlink(self, link: Link, kind: Kind = "unlinked") -> None:
        """Remove an edge. Raises NotFound."""
        if not await memory_links.remove(
            self.tx, self.user_id, link.from_id, link.to_id, link.type
        ):
            raise NotFound("There is no such link.")
        self._note(link.from_id, kind, State(link=link), None)

    async def annotate(
        self, memory_id: UUID, annotation: Annotation, kind: Kind = "annotated"
    ) -> None:
        """Write a remark."""
        await memory_annotations.add(self.tx, self.user_id, memory_id, annotation)
        self._note(memory_id, kind, None, State(annotation=annotation))

    async def assign(self, kind: Kind, memory_id: UUID, wanted: Sequence[UUID]) -> None:
        """Let a memory be about exactly these entities."""
        before = (await entities.of_memories(self.tx, self.user_id, [memory_id])).get(memory_id, ())
        after = tuple(sorted(set(wanted)))
        if before != after:
            await entities.assign(self.tx, self.user_id, memory_id, after)
            self._note(memory_id, kind, State(entities=before), State(entities=after))

    async def merge_entity(
        self, kind: Kind, entity_id: UUID, before: UUID | None, into: UUID | None
    ) -> None:
        """Let an entity point to the one it was merged into, or stand for itself again."""
        await entities.set_merged(self.tx, self.user_id, entity_id, into)
        self._note(entity_id, kind, State(merged_into=before), State(merged_into=into))

    async def delete(self, memory: Memory) -> None:
        """Remove a memory and its words from everywhere; the account says only that it was."""
        for other in await memories.succeeded_by(self.tx, self.user_id, memory.id):
            [standing] = (await memories.find(self.tx, self.user_id, [other])).values()
            await self.change("edited", standing, Fields(superseded_by=None))
        own = (await entities.of_memories(self.tx, self.user_id, [memory.id])).get(memory.id, ())
        await self._remove(memory)
        await entities.remove_unused(self.tx, self.user_id, own)
        # A merge that was undone said its words, too, and nobody can delete what is gone.
        undone = await memory_events.gone_made_of(self.tx, self.user_id, memory.id)
        for one in (memory.id, *undone):
            await memory_events.forget_words(self.tx, self.user_id, one)
        self._note(memory.id, "deleted", None, None)

    async def _remove(self, memory: Memory) -> None:
        if memory.status == "active":
            await self._unindex(memory)
        await memories.remove(self.tx, self.user_id, memory.id)

    # The opposites.

    async def invert(self, event: MemoryEvent) -> None:
        """Undo a change. Raises Conflict if that is not possible any more."""
        before, after = event.before or State(), event.after or State()
        if event.before is None and event.after is None:
            raise Conflict("What a deletion took cannot be brought back.")
        if after.merged_into is not UNSET:
            await self._merge_entity_back(event.memory_id, before, after)
        elif after.record is not UNSET:
            await self._uncreate(event.memory_id, after.record)
        elif before.record is not UNSET:
            await self._create_again(event.memory_id, before.record)
        elif after.link is not UNSET or before.link is not UNSET:
            await self._relink(before, after)
        elif after.annotation is not UNSET or before.annotation is not UNSET:
            await self._reannotate(event.memory_id, before, after)
        else:
            await self._change_back(event.memory_id, before, after)

    async def _merge_entity_back(self, entity_id: UUID, before: State, after: State) -> None:
        found = await entities.find(self.tx, self.user_id, [entity_id])
        if not found or found[0].merged_into != after.merged_into:
            raise Conflict("This entity has been merged again or removed since.")
        assert before.merged_into is not UNSET
        if before.merged_into is not None:
            if not await entities.find(self.tx, self.user_id, [before.merged_into]):
                raise Conflict("What this entity was merged into is gone.")
            if entity_id in await entities.follow(self.tx, self.user_id, [before.merged_into]):
                raise Conflict("What this entity was merged into is merged into it by now.")
        await self.merge_entity("undone", entity_id, found[0].merged_into, before.merged_into)

    async def _uncreate(self, memory_id: UUID, record: Record) -> None:
        memory = await self._standing(memory_id)
        own = (await entities.of_memories(self.tx, self.user_id, [memory_id])).get(memory_id, ())
        present = memories.record_of(memory, own)
        if changed := _lasting_changes(record, present):
            raise Conflict(
                f"{memory.short_id} has been changed since it was made ({', '.join(changed)})."
            )
        if await memory_links.touching(self.tx, self.user_id, [memory_id], limit=1):
            raise Conflict(f"{memory.short_id} has been linked since it was made.")
        if await memory_annotations.of_memory(self.tx, self.user_id, memory_id):
            raise Conflict(f"{memory.short_id} has been annotated since it was made.")
        if await memories.succeeded_by(self.tx, self.user_id, memory_id):
            raise Conflict(f"{memory.short_id} has taken the place of another since it was made.")
        await self._remove(memory)
        self._note(memory_id, "undone", State(record=present), None)

    async def _create_again(self, memory_id: UUID, record: Record) -> None:
        if await memories.find(self.tx, self.user_id, [memory_id]):
            raise Conflict("This memory is there again already.")
        if not await memories.short_id_is_free(self.tx, self.user_id, record.short_id):
            raise Conflict(f"The name {record.short_id} belongs to another memory now.")
        await self.create(memory_id, record, "undone")

    async def _relink(self, before: State, after: State) -> None:
        if after.link is not UNSET:
            standing = await self._link_like(after.link)
            if standing != after.link:
                raise Conflict("This link has been changed since.")
            await self.unlink(standing, "undone")
        if before.link is not UNSET:
            await self._standing(before.link.from_id)
            await self._standing(before.link.to_id)
            if not await self.link(before.link, "undone"):
                raise Conflict("This link is there again already.")

    async def _link_like(self, link: Link) -> Link | None:
        try:
            return await memory_links.get(
                self.tx, self.user_id, link.from_id, link.to_id, link.type
            )
        except NotFound:
            return None

    async def _reannotate(self, memory_id: UUID, before: State, after: State) -> None:
        if after.annotation is not UNSET:
            if not await memory_annotations.remove(self.tx, self.user_id, after.annotation.id):
                raise Conflict("This annotation is gone already.")
            self._note(memory_id, "undone", State(annotation=after.annotation), None)
        if before.annotation is not UNSET:
            await self._standing(memory_id)
            await self.annotate(memory_id, before.annotation, "undone")

    async def _change_back(self, memory_id: UUID, before: State, after: State) -> None:
        memory = await self._standing(memory_id)
        if after.fields is not UNSET and before.fields is not UNSET:
            if _chosen(memory, after.fields) != after.fields:
                raise Conflict(f"{memory.short_id} has been changed since.")
            if isinstance(before.fields.superseded_by, UUID):
                await self._can_succeed(memory, before.fields.superseded_by)
            await self.change("undone", memory, before.fields)
        if after.counts is not UNSET and before.counts is not UNSET:
            # Counted by others meanwhile: taken off again is only what this one added.
            day = memory.use_day_accessed
            if day == after.counts.use_day_accessed:
                day = before.counts.use_day_accessed
            added = after.counts.mention_count - before.counts.mention_count
            await self.count("undone", memory, day, mentions=-added)
        if after.entities is not UNSET and before.entities is not UNSET:
            own = (await entities.of_memories(self.tx, self.user_id, [memory_id])).get(memory_id)
            if (own or ()) != after.entities:
                raise Conflict(f"{memory.short_id} is about something else since.")
            await self.assign("undone", memory_id, before.entities)

    async def _can_succeed(self, memory: Memory, successor: UUID) -> None:
        await self._standing(successor)
        later = await memories.successors_of(self.tx, self.user_id, [successor])
        if memory.id in later.get(successor, ()):
            raise Conflict(f"{memory.short_id} has taken the place of its successor since.")

    async def _standing(self, memory_id: UUID) -> Memory:
        found = await memories.find(self.tx, self.user_id, [memory_id])
        if not found:
            raise Conflict("A memory that this step concerned is gone.")
        return found[memory_id]

    # The index.

    async def _index(self, doc: int, text: str) -> None:
        document = Document(doc, term_frequencies(text))
        await postings.add(self.tx, self.user_id, Source.MEMORIES, [document])
        if self.spaces is None:
            return
        if text not in self._encoded:
            raise Unencoded(text)
        for space in self.spaces.all:
            vector = self._encoded[text].get(space.model)
            if vector is not None:
                await vectors.put(self.tx, self.user_id, Source.MEMORIES, space, [(doc, 0, vector)])

    async def _unindex(self, memory: Memory) -> None:
        document = Document(memory.doc, term_frequencies(memory.text))
        await postings.remove(self.tx, self.user_id, Source.MEMORIES, [document])
        await vectors.remove(self.tx, self.user_id, Source.MEMORIES, [memory.doc])

    def _note(self, memory_id: UUID, kind: Kind, before: State | None, after: State | None) -> None:
        self.events.append(
            MemoryEvent(
                id=self.ids.new(), memory_id=memory_id, kind=kind, actor=self._actor,
                turn_id=self._turn_id, at=self.now, before=before, after=after, step=self.step,
            )
        )  # fmt: skip


def _chosen(memory: Memory, like: Fields) -> Fields:
    """Those columns of a memory that `like` sets."""
    names = [name for name in Fields.__struct_fields__ if getattr(like, name) is not UNSET]
    return Fields(**{name: getattr(memory, name) for name in names})


def _differing(memory: Memory, fields: Fields) -> tuple[Fields, Fields]:
    """What of `fields` differs from the memory: as it stands, and as it is to be."""
    names = [
        name for name in Fields.__struct_fields__
        if getattr(fields, name) is not UNSET and getattr(fields, name) != getattr(memory, name)
    ]  # fmt: skip
    return (
        Fields(**{name: getattr(memory, name) for name in names}),
        Fields(**{name: getattr(fields, name) for name in names}),
    )


def _lasting_changes(before: Record, after: Record) -> list[str]:
    """The fields that differ, but for what use and time change by themselves."""
    by_themselves = ("importance", "use_day_accessed", "access_count", "mention_count")
    return [
        name
        for name in Record.__struct_fields__
        if name not in by_themselves and getattr(before, name) != getattr(after, name)
    ]
