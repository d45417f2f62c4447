"""What a segment tells of the user, stored: chunk by chunk, each once.

A chunk is done in the transaction that stores its memories, a segment extracted in that of its
last chunk; whatever is cut off before is done again from there. A batch and a direct call end in
the same transaction, so that they give the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from uuid import UUID

from msgspec.structs import replace

from mira.actors.memory_keeper_parts import (
    EXTRACTION,
    LINKS,
    KeeperParts,
    Step,
    batch_lane,
    keeper_of,
    zone_of,
)
from mira.actors.memory_keeper_questions import Answered, Question, blameless
from mira.actors.runtime.actor import Context
from mira.errors import ContextOverflow, MiraError, NotFound, ProviderError, ValidationFailed
from mira.llm.base import Finished
from mira.memory import chunks as chunking
from mira.memory import extraction as reading
from mira.memory.chunks import Chunk, Line
from mira.memory.extraction import Extraction, Fact, Known
from mira.memory.model import EntityName, NewMemory, Prepared, Stored, checked_text
from mira.memory.quoting import quoted
from mira.messages.base import Address
from mira.messages.content import RESULT_SHOWN
from mira.messages.memory import ExtractSegment, LinkMemories, PollBatch
from mira.messages.segment import MemoriesMade
from mira.store import batches, extraction, model_calls
from mira.store.database import Tx
from mira.store.extraction import ChunkRecord, Who
from mira.telemetry import logger

log = logger("keeper")

#: Attempts in batches, after which a chunk is asked for directly.
BATCH_ATTEMPTS = 3
#: Attempts after which a chunk is asked for no more than once a use-day.
STUCK = 5
#: How long new memories wait for the rest of their segment before they are linked without it.
REST = timedelta(minutes=10)


@dataclass(frozen=True)
class Scene:
    """A segment as it stands, with everything that its chunks are asked with."""

    segment_id: UUID
    who: Who
    lines: tuple[Line, ...]
    known: tuple[Known, ...]
    #: What tools and documents told in it.
    others: tuple[str, ...]
    chunks: tuple[ChunkRecord, ...]

    def chunk(self, record: ChunkRecord) -> Chunk:
        return chunking.again(self.lines, record.message_ids)


class SegmentExtraction:
    """Extracts the segments of one user."""

    def __init__(self, parts: KeeperParts, user_id: UUID) -> None:
        self._parts = parts
        self._user_id = user_id

    async def extract(self, ctx: Context, message: ExtractSegment) -> None:
        """Bring a segment as far as it can be brought now. Raises what the last failure was."""
        try:
            scene = await self.scene(message.segment_id, plan=True)
        except NotFound:
            return
        self._parts.reached(Step.PLANNED)
        if message.now:
            # What a batch has may be done here too: its result will then find nothing to do.
            left = [c for c in scene.chunks if c.state != "done"]
        else:
            left = [c for c in scene.chunks if c.state == "waiting"]
        port = self._parts.batches()
        if not left:
            async with self._parts.database.user(self._user_id) as tx:
                await extraction.finish(
                    tx, self._user_id, message.segment_id, self._parts.clock.now()
                )
                await ctx.done(tx)
        elif port is None or message.now or max(c.attempts for c in left) >= BATCH_ATTEMPTS:
            await self._ask_directly(ctx, scene, left)
        else:
            await self._hand_over(ctx, left, port.name)

    async def scene(self, segment_id: UUID, *, plan: bool = False) -> Scene:
        """A segment as it stands; with `plan`, what of it is in no chunk yet is put into further
        ones (for one caller at a time). Raises NotFound."""
        parts, user_id = self._parts, self._user_id
        async with parts.database.user(user_id) as tx:
            await extraction.segment(tx, user_id, segment_id)
            who = await extraction.who(tx, user_id)
            by_turn, texts = await extraction.recalled(tx, user_id, segment_id)
            messages = await extraction.messages(tx, user_id, segment_id)
            lines = chunking.lines_of(messages, by_turn)
            documents = await extraction.documents(tx, user_id, segment_id, most=RESULT_SHOWN)
            known = await extraction.chunks(tx, user_id, segment_id)
            planned = {one for chunk in known for one in chunk.message_ids}
            rest = [line for line in lines if line.message_id not in planned]
            new = chunking.cut(rest, most=parts.questions.characters)
            if new and plan:
                await extraction.plan(
                    tx, user_id, segment_id,
                    [(parts.ids.new(), chunk.message_ids) for chunk in new], parts.clock.now(),
                )  # fmt: skip
                known = await extraction.chunks(tx, user_id, segment_id)
        return Scene(
            segment_id=segment_id,
            who=who,
            lines=tuple(lines),
            others=(*chunking.results_in(messages), *documents),
            known=tuple(Known(*one) for one in texts.items())[: reading.MOST_KNOWN],
            chunks=tuple(known),
        )

    def question(self, scene: Scene, chunk: Chunk) -> Question:
        """What is asked about a chunk, in a batch or directly."""
        zone = zone_of(scene.who.timezone)
        earlier, lines = reading.shown(chunk, zone)
        shown = tuple(Known(k.short_id, quoted(" ".join(k.text.split()))) for k in scene.known)
        return Question(
            purpose="extraction",
            template="extraction",
            schema=reading.SCHEMA,
            instructions={"user": scene.who.name},
            data={"known": shown, "earlier": earlier, "lines": lines, "zone": zone.key},
        )

    async def ask(
        self, scene: Scene, record: ChunkRecord, given: Finished | None = None
    ) -> Answered[Extraction]:
        """Ask about a chunk; one that is too long for the model once more in a shorter form."""
        chunk = scene.chunk(record)
        answered = await self._ask(scene, chunk, given)
        if isinstance(answered.error, ContextOverflow):
            shorter = await self._ask(scene, _shorter(chunk), None)
            return Answered(answered.calls + shorter.calls, shorter.value, shorter.error)
        return answered

    async def _ask(
        self, scene: Scene, chunk: Chunk, given: Finished | None
    ) -> Answered[Extraction]:
        zone = zone_of(scene.who.timezone)
        return await self._parts.questions.ask(
            self.question(scene, chunk),
            lambda words, cut: reading.parse(
                words, chunk, scene.known, zone, others=scene.others, cut=cut
            ),
            given=given,
            incomplete=lambda found: found.cut,
        )

    async def _hand_over(self, ctx: Context, left: list[ChunkRecord], provider: str) -> None:
        """Write down that these are to be asked for in a batch; PollBatch does the rest."""
        parts, user_id = self._parts, self._user_id
        batch_id = parts.ids.new()
        async with parts.database.user(user_id) as tx:
            await batches.intend(tx, user_id, batch_id, provider, parts.clock.now())
            await extraction.asked(tx, user_id, [chunk.id for chunk in left], batch_id)
            await ctx.tell_durable(
                tx, keeper_of(user_id), PollBatch(batch_id=batch_id),
                lane=batch_lane(batch_id), key="poll",
            )  # fmt: skip
            await ctx.done(tx)
        parts.reached(Step.INTENDED)

    async def _ask_directly(self, ctx: Context, scene: Scene, left: list[ChunkRecord]) -> None:
        failure: ProviderError | None = None
        for record in left:
            answered = await self.ask(scene, record)
            self._parts.reached(Step.ANSWERED)
            await self.settle(ctx, scene, record, answered, ends=record is left[-1] and not failure)
            if answered.error is not None:
                failure = answered.error
                if failure.outage:
                    break
        if failure is None:
            return
        if blameless(failure) or max(record.attempts for record in left) + 1 < STUCK:
            raise failure
        # Whatever it is, asking on and on only costs: once more with the next use-day.
        log.warning("extraction_stuck", code=failure.code, segment=str(scene.segment_id))

    async def settle(
        self,
        ctx: Context,
        scene: Scene,
        record: ChunkRecord,
        answered: Answered[Extraction],
        *,
        ends: bool = False,
    ) -> None:
        """Store what an answer tells, or the reason why there is none, with what it has cost.

        `ends`: the message in `ctx` is done with it.
        """
        parts, user_id, found = self._parts, self._user_id, answered.value
        if found is None:
            assert answered.error is not None
            error = answered.error
            async with parts.database.user(user_id) as tx:
                await model_calls.book(tx, user_id, answered.calls, parts.clock.now())
                await extraction.failed(
                    tx, user_id, record.id, answered.spent, error.detail,
                    attempt=not blameless(error),
                )  # fmt: skip
            log.warning("extraction_failed", code=error.code, chunk=str(record.id))
            return
        facts = tuple(fact for fact in found.facts if _storable(fact))
        try:
            prepared = await parts.memories.prepare(
                user_id, [_new(fact, scene.segment_id) for fact in facts]
            )
        except MiraError as error:
            async with parts.database.user(user_id) as tx:
                await model_calls.book(tx, user_id, answered.calls, parts.clock.now())
                await extraction.failed(
                    tx, user_id, record.id, answered.spent, error.detail, attempt=False
                )
            raise
        parts.reached(Step.PREPARED)
        stored: list[Stored] = []
        async with parts.database.user(user_id) as tx:
            now = parts.clock.now()
            await model_calls.book(tx, user_id, answered.calls, now)
            if await extraction.done(tx, user_id, record.id, answered.spent, now, _note(found)):
                stored = await self._store(tx, facts, prepared)
            whole = await extraction.finish(tx, user_id, scene.segment_id, now)
            if stored or (whole and len(scene.chunks) > 1):
                # Looked at together once all is there, or later if the rest is not to be had.
                await ctx.tell_durable(
                    tx, keeper_of(user_id), LinkMemories(), lane=LINKS, key=LINKS,
                    at=now if whole else now + REST,
                )  # fmt: skip
            if stored:
                await ctx.tell_durable(
                    tx, Address("continuum", str(user_id)),
                    MemoriesMade(segment_id=scene.segment_id, count=len(stored)),
                    lane="segments", key=f"memories/{record.id}",
                )  # fmt: skip
            if ends:
                await ctx.done(tx)
        parts.reached(Step.STORED)
        log.info(
            "extracted", chunk=str(record.id), stored=len(stored), refused=len(found.refused),
            damaged=found.damaged, cut=found.cut, calls=answered.spent.calls,
            input_tokens=answered.spent.input_tokens, output_tokens=answered.spent.output_tokens,
        )  # fmt: skip

    async def _store(
        self, tx: Tx, facts: tuple[Fact, ...], prepared: list[Prepared]
    ) -> list[Stored]:
        """Store facts in order; those that belong together are linked as soon as both are there."""
        stored: list[Stored] = []
        for position, (fact, ready) in enumerate(zip(facts, prepared, strict=True)):
            hints = [(to, bond) for to, bond in fact.hints if to < position]
            hints += [
                (earlier, bond)
                for earlier in range(position)
                for to, bond in facts[earlier].hints
                if to == position
            ]
            stored += await self._parts.memories.store(
                tx, self._user_id, [_related(ready, stored, hints)], actor="extraction"
            )
        return stored

    async def again(self, ctx: Context, tx: Tx, segment_id: UUID, *, now: bool = False) -> None:
        """Have a segment extracted, in the transaction of whatever calls for it."""
        await ctx.tell_durable(
            tx, keeper_of(self._user_id), ExtractSegment(segment_id=segment_id, now=now),
            lane=EXTRACTION, key=str(segment_id),
        )  # fmt: skip


def _related(ready: Prepared, stored: list[Stored], hints: list[tuple[int, str]]) -> Prepared:
    if not hints:
        return ready
    related = tuple((stored[to].memory.id, bond) for to, bond in hints)
    return replace(ready, new=replace(ready.new, related=(*ready.new.related, *related)))


def _new(fact: Fact, segment_id: UUID) -> NewMemory:
    return NewMemory(
        text=fact.text,
        source="extraction",
        entities=tuple(EntityName(name, kind) for name, kind in fact.entities),
        happens_at=fact.happens_at,
        expires_at=fact.expires_at,
        valid_from=fact.said_at,
        segment_id=segment_id,
        message_ids=fact.message_ids,
        supersedes=fact.supersedes,
        related=fact.related,
    )


def _storable(fact: Fact) -> bool:
    try:
        checked_text(fact.text)
    except ValidationFailed:
        return False
    return True


def _note(found: Extraction) -> str | None:
    """What of an answer was not taken, without a word of it."""
    notes = [f"{found.refused.count(why)} × {why}" for why in sorted(set(found.refused))]
    notes += ["repaired"] if found.damaged else []
    notes += ["cut at its end"] if found.cut else []
    return "; ".join(notes)[:500] or None


def _shorter(chunk: Chunk) -> Chunk:
    """The same lines with their middles left out, and nothing before them."""
    most = max(400, 6_000 // max(1, len(chunk.lines)))
    shorter = partial(chunking.shortened, most=most)
    return Chunk(lines=tuple(replace(line, text=shorter(line.text)) for line in chunk.lines))
