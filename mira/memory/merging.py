"""Several memories made one; several entities made one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from uuid import UUID

import msgspec

from mira.errors import Conflict, NotFound, ValidationFailed
from mira.memory.journal import Journal
from mira.memory.storing import new_doc, new_identity
from mira.store import entities, memories, memory_links, memory_scores
from mira.store.memories import Memory
from mira.store.memory_events import Fields, Record


async def merge(
    journal: Journal, sources: Sequence[Memory], text: str, turn_id: UUID | None
) -> UUID:
    """Make one new memory of several active ones; returns its id.

    It has the union of their links, entities and evidence and the median of their importance; it
    was made when the oldest of them was and used when the newest use of them was. The sources are
    archived and name it as what took their place. Raises Conflict if one of them is not active or
    was true only until some time.
    """
    if len(sources) < 2:
        raise ValidationFailed("Merging takes at least two different memories.")
    for one in sources:
        if one.status != "active" or one.superseded_by or one.valid_to:
            raise Conflict(f"{one.short_id} is no active memory.")
    tx, user_id = journal.tx, journal.user_id
    ids = [one.id for one in sources]
    owned = await entities.of_memories(tx, user_id, ids)
    memory_id, short_id = await new_identity(journal)
    happens = {one.happens_at for one in sources}
    expires = [one.expires_at for one in sources]
    record = Record(
        short_id=short_id,
        doc=await new_doc(journal),
        text=text,
        source="merge",
        source_turn=turn_id,
        source_memories=tuple(ids),
        source_messages=tuple(dict.fromkeys(m for one in sources for m in one.source_messages)),
        # A date that the sources do not agree on is no date of the whole.
        happens_at=happens.pop() if len(happens) == 1 else None,
        expires_at=None if None in expires else max(e for e in expires if e is not None),
        valid_from=min(one.valid_from for one in sources),
        created_at=journal.now,
        importance=median(one.importance for one in sources),
        use_day_created=min(one.use_day_created for one in sources),
        use_day_accessed=max(
            (one.use_day_accessed for one in sources if one.use_day_accessed is not None),
            default=None,
        ),
        access_count=round(median(one.access_count for one in sources)),
        mention_count=max(one.mention_count for one in sources) + 1,
        entities=tuple(sorted({e for one in sources for e in owned.get(one.id, ())})),
    )
    await journal.create(memory_id, record)
    await _repoint(journal, dict.fromkeys(ids, memory_id))
    for one in sources:
        await journal.change("merged", one, Fields(status="archived", superseded_by=memory_id))
        # What an earlier fact was replaced by is now what these were made into.
        for earlier in await memories.succeeded_by(tx, user_id, one.id):
            [old] = (await memories.find(tx, user_id, [earlier])).values()
            await journal.change("edited", old, Fields(superseded_by=memory_id))
    return memory_id


async def _repoint(journal: Journal, onward: Mapping[UUID, UUID]) -> None:
    """Let edges that touch one of these touch another memory instead; those that would lead from
    it to itself are dropped."""
    for link in await memory_links.touching(journal.tx, journal.user_id, list(onward)):
        await journal.unlink(link)
        await journal.link(
            msgspec.structs.replace(
                link,
                from_id=onward.get(link.from_id, link.from_id),
                to_id=onward.get(link.to_id, link.to_id),
            )
        )


async def merge_entities(journal: Journal, into: UUID, others: Sequence[UUID]) -> None:
    """Let `into` stand for `others` too: their memories become its own, their names lead to it.

    Raises NotFound for an unknown one, ValidationFailed unless all are of one type.
    """
    tx, user_id = journal.tx, journal.user_id
    target = await entities.get(tx, user_id, (await entities.follow(tx, user_id, [into]))[0])
    touched: list[UUID] = []
    for entity_id in dict.fromkeys(await entities.follow(tx, user_id, others)):
        if entity_id == target.id:
            continue
        other = await entities.get(tx, user_id, entity_id)
        if other.type != target.type:
            raise ValidationFailed("Only entities of one type can be merged.")
        for memory_id in await entities.memories_of(tx, user_id, entity_id):
            own = (await entities.of_memories(tx, user_id, [memory_id])).get(memory_id, ())
            await journal.assign("edited", memory_id, [*(set(own) - {entity_id}), target.id])
            touched.append(memory_id)
        await journal.merge_entity("merged", entity_id, other.merged_into, target.id)
    await memory_scores.refresh(tx, user_id, touched, journal.now)


def all_found(refs: Sequence[UUID | str], known: Mapping[UUID | str, UUID]) -> list[UUID]:
    """The ids of refs, each once, in their order. Raises NotFound naming those that are unknown."""
    missing = [str(ref) for ref in refs if ref not in known]
    if missing:
        raise NotFound(f"There is no such memory: {', '.join(missing)}.")
    return list(dict.fromkeys(known[ref] for ref in refs))
