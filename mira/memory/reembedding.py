"""Moves a user's vectors to the model that is current, a piece at a time.

Until every memory and every passage has its vector in the new space, searches use the old one;
then they change over at once, and the old vectors are removed. Spaces are never mixed. What was
stored while there was no encoder gets its vector here too.

Call `step` again as long as it returns True. A step that is cut off is simply done again.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from mira.memory import passage_text
from mira.memory.encoding import Encoder, ready
from mira.memory.passage_text import PassageText
from mira.memory.steps import Steps
from mira.store import memories, memory_search, passages, spaces, vectors
from mira.store.database import Tx
from mira.store.passages import Names, Passage
from mira.store.spaces import Source, Space, Spaces

#: How many memories, or passages, are encoded by one step.
AT_ONCE = 32
#: How many vectors of a space that was left are removed by one step.
REMOVED = 5000

Row = tuple[int, int, Sequence[float]]


async def step(steps: Steps, user_id: UUID, *, at_once: int = AT_ONCE) -> bool:
    """Do a piece of what is left to do, `at_once` memories or passages; False if nothing is left.

    Raises Unavailable if the encoder stops in the middle."""
    current = ready(steps.encoders)
    if current is None:
        return False
    ours = await _begin(steps, user_id, current)
    if ours is None:
        return False
    for space in ours.all:
        encoder = steps.encoders.of(space.model)
        if encoder is not None and (
            await _fill_memories(steps, user_id, space, encoder, at_once)
            or await _fill_passages(steps, user_id, space, encoder, at_once)
        ):
            return True
    if ours.next is not None:
        return await _switch(steps, user_id, ours.next)
    return await _clear(steps, user_id, ours)


async def _begin(steps: Steps, user_id: UUID, current: Encoder) -> Spaces | None:
    """The user's spaces, on the way to the current model; None if there is nothing to encode."""
    now = steps.clock.now()
    async with steps.database.user(user_id) as tx:
        found = await spaces.find(tx, user_id)
        if found is None and not await memory_search.any_active(tx, user_id):
            return None
        if found is None:
            return await spaces.ensure(tx, user_id, current.model, current.dimension, now)
        if found.active.model == current.model:
            if found.next is not None:
                await spaces.set_next(tx, user_id, None)
        elif found.next is None or found.next.model != current.model:
            space = await spaces.register(tx, current.model, current.dimension, now)
            await spaces.set_next(tx, user_id, space)
        return await spaces.find(tx, user_id)


async def _fill_memories(
    steps: Steps, user_id: UUID, space: Space, encoder: Encoder, at_once: int
) -> bool:
    async with steps.database.user(user_id) as tx:
        missing = await vectors.memories_without(tx, user_id, space, limit=at_once)
    if not missing:
        return False
    encoded = await encoder.texts([text for _, text in missing])
    async with steps.database.user(user_id) as tx:
        await memories.lock(tx, user_id)
        # Changed or archived meanwhile: left to whoever did that, or to the next step.
        still = set(await vectors.memories_without(tx, user_id, space, among=missing))
        rows: list[Row] = [
            (doc, 0, vector.tolist())
            for (doc, text), vector in zip(missing, encoded, strict=True)
            if (doc, text) in still
        ]
        await vectors.put(tx, user_id, Source.MEMORIES, space, rows)
    return True


async def _fill_passages(
    steps: Steps, user_id: UUID, space: Space, encoder: Encoder, at_once: int
) -> bool:
    async with steps.database.user(user_id) as tx:
        missing = await vectors.passages_without(tx, user_id, space, limit=at_once)
        if not missing:
            return False
        around = {
            one.doc: one
            for first, last in _runs(missing)
            for one in await passages.between(tx, user_id, first - 1, last + 1)
        }
        names = await passages.names(tx, user_id)
    texts = {doc: _text(one, names) for doc, one in around.items()}
    units: list[tuple[int, int, str]] = []
    for doc in missing:
        one = texts[doc]
        units.append((doc, 0, passage_text.window(texts.get(doc - 1), one, texts.get(doc + 1))))
        units += [(doc, n, part) for n, part in enumerate(passage_text.parts(one), start=1)]
    encoded = await encoder.texts([text for _, _, text in units])
    async with steps.database.user(user_id) as tx:
        await passages.lock(tx, user_id)
        still = set(await vectors.passages_without(tx, user_id, space, among=missing))
        rows: list[Row] = [
            (doc, unit, vector.tolist())
            for (doc, unit, _), vector in zip(units, encoded, strict=True)
            if doc in still
        ]
        await vectors.put(tx, user_id, Source.PASSAGES, space, rows)
    return True


async def _switch(steps: Steps, user_id: UUID, following: Space) -> bool:
    """Change over, if really nothing is missing now that nobody can add anything."""
    async with steps.database.user(user_id) as tx:
        await memories.lock(tx, user_id)
        await passages.lock(tx, user_id)
        found = await spaces.find(tx, user_id)
        if (
            found is not None
            and found.next == following
            and not await _incomplete(tx, user_id, following)
        ):
            await spaces.switch(tx, user_id, steps.clock.now())
    return True


async def _incomplete(tx: Tx, user_id: UUID, space: Space) -> bool:
    return bool(
        await vectors.memories_without(tx, user_id, space, limit=1)
        or await vectors.passages_without(tx, user_id, space, limit=1)
    )


async def _clear(steps: Steps, user_id: UUID, ours: Spaces) -> bool:
    """Remove vectors of spaces that were left."""
    async with steps.database.user(user_id) as tx:
        for space in await spaces.known(tx):
            if space != ours.active and await vectors.discard(tx, user_id, space, limit=REMOVED):
                return True
    return False


def _runs(docs: Sequence[int]) -> list[tuple[int, int]]:
    """Rising numbers as (first, last) of each unbroken run."""
    runs: list[tuple[int, int]] = []
    for doc in docs:
        if runs and runs[-1][1] == doc - 1:
            runs[-1] = (runs[-1][0], doc)
        else:
            runs.append((doc, doc))
    return runs


def _text(one: Passage, names: Names) -> PassageText:
    return PassageText(doc=one.doc, speaker=names.of(one.role), at=one.said_at, words=one.words)
