"""New memories: prepared outside of any transaction, then stored, reinforced or superseding."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from msgspec import UNSET

from mira.memory.duplicates import NEAR, repeats
from mira.memory.journal import Journal
from mira.memory.model import LONGEST_REASON, Prepared, Stored
from mira.memory.terms import clean
from mira.store import entities, memories, memory_scores, memory_search, postings, vectors
from mira.store.memories import Memory
from mira.store.memory_events import Evidence, Fields, Link, Record
from mira.store.spaces import Source

#: How many of the nearest are looked at for a repetition.
_NEAREST = 12


async def store(journal: Journal, one: Prepared, turn_id: UUID | None) -> Stored:
    """Store one memory: new, or as one more mention of the one that says the same.

    What it names as superseded is closed at its `valid_from`; refs that name nothing are told and
    otherwise passed over.
    """
    tx, user_id, new = journal.tx, journal.user_id, one.new
    refs = [*new.supersedes, *(ref for ref, _ in new.related)]
    known = await memories.resolve(tx, user_id, refs)
    closing = list(dict.fromkeys(known[ref] for ref in new.supersedes if ref in known))
    unknown = tuple(dict.fromkeys(str(ref) for ref in refs if ref not in known))

    alike = await _alike(journal, one)
    same = next((m for m, cosine in alike if m.id not in closing and _same(one, m, cosine)), None)
    if same is not None:
        await _reinforce(journal, same, one)
        memory_id = same.id
    else:
        memory_id = await _create(journal, one, turn_id)
    closed = await _close(journal, closing, memory_id, new.valid_from or journal.now)
    for ref, bond in new.related:
        if ref in known:
            await journal.link(_link(journal, memory_id, known[ref], bond))
    touched = [memory_id, *(known[ref] for ref, _ in new.related if ref in known)]
    await memory_scores.refresh(tx, user_id, touched, journal.now)
    memory = (await memories.find(tx, user_id, [memory_id]))[memory_id]
    return Stored(
        memory=memory,
        outcome="reinforced" if same else "superseding" if closed else "created",
        event_id=journal.events[0].id,
        superseded=tuple(closed),
        unknown=unknown,
        near=tuple(
            (m.id, cosine) for m, cosine in alike
            if cosine >= NEAR and m.id not in closing and m.id != memory_id
        ),
    )  # fmt: skip


async def _alike(journal: Journal, one: Prepared) -> list[tuple[Memory, float]]:
    """Active memories that may say the same, with their cosine (0 where it is not known)."""
    tx, user_id, spaces = journal.tx, journal.user_id, journal.spaces
    cosines: dict[int, float] = {}
    if spaces is not None and (vector := one.vectors.get(spaces.active.model)) is not None:
        near = await vectors.nearest(
            tx,
            user_id,
            Source.MEMORIES,
            spaces.active,
            vector,
            documents=(await postings.corpus(tx, user_id, Source.MEMORIES)).documents,
            limit=_NEAREST,
        )
        cosines = {n.doc: n.similarity for n in near}
    docs = await memory_search.sharing_rare_terms(
        tx, user_id, list(one.terms), sum(one.terms.values())
    )
    standing = await memories.active_texts(tx, user_id, [*cosines, *docs])
    pairs = [(m, cosines.get(m.doc, 0.0)) for m in standing]
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0].doc))


def _same(one: Prepared, old: Memory, cosine: float) -> bool:
    return repeats(one.text, old.text, cosine, one.new.happens_at, old.happens_at)


async def _reinforce(journal: Journal, old: Memory, one: Prepared) -> None:
    """Said once more: it counts, the evidence is noted, a missing date is filled in."""
    new = one.new
    evidence = Evidence(
        source=new.source, segment_id=new.segment_id, message_ids=new.message_ids,
        text="" if one.text == old.text else one.text,
    )  # fmt: skip
    use_day = await memories.use_days(journal.tx, journal.user_id)
    await journal.count("reinforced", old, use_day, evidence)
    dates = Fields(
        happens_at=UNSET if old.happens_at or not new.happens_at else new.happens_at,
        expires_at=UNSET if old.expires_at or not new.expires_at else new.expires_at,
    )
    await journal.change("reinforced", old, dates)


async def _create(journal: Journal, one: Prepared, turn_id: UUID | None) -> UUID:
    tx, user_id, new = journal.tx, journal.user_id, one.new
    memory_id, short_id = await new_identity(journal)
    record = Record(
        short_id=short_id,
        doc=await new_doc(journal),
        text=one.text,
        source=new.source,
        source_segment=new.segment_id,
        source_turn=turn_id,
        source_messages=new.message_ids,
        happens_at=new.happens_at,
        expires_at=new.expires_at,
        valid_from=new.valid_from or journal.now,
        created_at=journal.now,
        importance=0.0,
        use_day_created=await memories.use_days(tx, user_id),
        entities=tuple(
            sorted(await entities.ensure(tx, user_id, one.entities, journal.ids, journal.now))
        ),
    )
    await journal.create(memory_id, record)
    return memory_id


async def _close(journal: Journal, closing: Sequence[UUID], by: UUID, at: datetime) -> list[UUID]:
    """Close memories that another replaces. Those that are closed already stay as they are."""
    found = await memories.find(journal.tx, journal.user_id, closing)
    closed = []
    for memory in found.values():
        if memory.id != by and memory.superseded_by is None:
            await supersede(journal, memory, by, at)
            closed.append(memory.id)
    return closed


async def supersede(journal: Journal, old: Memory, by: UUID, at: datetime) -> None:
    """Let `old` be true until `at`, and name what is true since then."""
    ends = max(at, old.valid_from)
    await journal.change("superseded", old, Fields(valid_to=ends, superseded_by=by))
    await journal.link(
        Link(
            from_id=by, to_id=old.id, type="supersedes", reason="", confidence=1.0,
            created_at=journal.now,
        )
    )  # fmt: skip


async def new_identity(journal: Journal) -> tuple[UUID, str]:
    """An id with a short id that is free; drawn again where it is taken."""
    while True:
        memory_id = journal.ids.new()
        short_id = f"mem_{memory_id.hex[-8:]}"
        if await memories.short_id_is_free(journal.tx, journal.user_id, short_id):
            return memory_id, short_id


async def new_doc(journal: Journal) -> int:
    """A number for the index that nothing had before."""
    return await postings.next_docs(journal.tx, journal.user_id, Source.MEMORIES, 1)


def _link(journal: Journal, from_id: UUID, to_id: UUID, bond: str) -> Link:
    return Link(
        from_id=from_id, to_id=to_id, type="other", reason=clean(bond).strip()[:LONGEST_REASON],
        confidence=1.0, created_at=journal.now,
    )  # fmt: skip
