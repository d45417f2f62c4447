"""Extractions in batches of the provider: handed over, asked for, read, or given up.

    intent ── submitted ── ended
       └───────────┴────── gone: its chunks wait again, after three times for a direct call

Whatever happens, the next poll finds out how things stand. A batch that may have been created
while nobody heard of it is looked for in the provider's list before another one is made; its items
bear its name, so that its results tell for certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Literal
from uuid import UUID

from mira.actors.memory_keeper_extraction import Scene, SegmentExtraction
from mira.actors.memory_keeper_parts import KeeperParts, Step, batch_lane, keeper_of
from mira.actors.memory_keeper_questions import blameless
from mira.actors.runtime.actor import Context
from mira.errors import NotFound, ProviderError, ProviderOutage, ProviderRejected
from mira.llm.batch import Batch, Batches, BatchItem, ItemOutcome, ItemResult
from mira.messages.memory import PollBatch
from mira.store import batches, extraction
from mira.store.batches import BatchRecord
from mira.store.extraction import ChunkRecord, Spent
from mira.telemetry import logger

log = logger("keeper")

#: A provider answers within this time, or not at all.
LONGEST = timedelta(hours=24)
#: By so much the provider's clock may be behind ours.
SKEW = timedelta(minutes=5)


class ExtractionBatches:
    """Works on the batches of one user."""

    def __init__(self, parts: KeeperParts, user_id: UUID, segments: SegmentExtraction) -> None:
        self._parts = parts
        self._user_id = user_id
        self._segments = segments

    async def poll(self, ctx: Context, message: PollBatch) -> None:
        """Bring a batch one step further. Raises ProviderOutage to be called again."""
        parts, user_id = self._parts, self._user_id
        try:
            async with parts.database.user(user_id) as tx:
                record = await batches.get(tx, user_id, message.batch_id)
                chunks = await extraction.of_batch(tx, user_id, message.batch_id)
        except NotFound:
            return
        if not record.open:
            return
        port = parts.batches()
        if port is None:
            await self._end(ctx, record, "gone", "The provider of this batch is not there.")
        elif not chunks:
            await self._end(ctx, record, "ended", None)
        elif record.state == "intent":
            await self._hand_over(ctx, port, record, chunks)
        else:
            await self._ask_for(ctx, port, record, chunks, message.polls)

    # Handing over.

    async def _hand_over(
        self, ctx: Context, port: Batches, record: BatchRecord, chunks: Sequence[ChunkRecord]
    ) -> None:
        parts, user_id = self._parts, self._user_id
        if parts.clock.now() - record.created_at >= LONGEST:
            await self._end(ctx, record, "gone", "It could not be handed over for a day.")
            return
        if record.submitted_at is not None:
            found, perhaps = await self._look_for(port, record, chunks)
            if found is not None:
                await self._handed_over(ctx, record, found.id)
                return
            if perhaps:
                await self._later(ctx, record, 0)
                return
        items = await self._items(record, chunks)
        async with parts.database.user(user_id) as tx:
            await batches.submitting(tx, user_id, record.id, parts.clock.now())
        parts.reached(Step.SUBMITTING)
        try:
            batch = await port.create(items)
        except ProviderOutage as outage:
            if outage.http_status == 429:
                # Turned away at the door: there is nothing to be looked for.
                async with parts.database.user(user_id) as tx:
                    await batches.submitting(tx, user_id, record.id, None)
            raise
        except ProviderError as refusal:
            blame = not blameless(refusal)
            await self._end(ctx, record, "gone", refusal.detail, now=True, attempt=blame)
            return
        parts.reached(Step.CREATED)
        await self._handed_over(ctx, record, batch.id)

    async def _items(self, record: BatchRecord, chunks: Sequence[ChunkRecord]) -> list[BatchItem]:
        scenes: dict[UUID, Scene] = {}
        items = []
        for chunk in chunks:
            scene = await self._scene(scenes, chunk.segment_id)
            question = self._segments.question(scene, scene.chunk(chunk))
            items.append(
                BatchItem(
                    name=_name(record, chunk), request=self._parts.questions.request(question)
                )
            )
        return items

    async def _scene(self, scenes: dict[UUID, Scene], segment_id: UUID) -> Scene:
        if segment_id not in scenes:
            scenes[segment_id] = await self._segments.scene(segment_id)
        return scenes[segment_id]

    async def _look_for(
        self, port: Batches, record: BatchRecord, chunks: Sequence[ChunkRecord]
    ) -> tuple[Batch | None, bool]:
        """The batch that nobody heard of, if it is there; and whether one that has not ended may
        be it."""
        assert record.submitted_at is not None
        async with self._parts.database.user(self._user_id) as tx:
            ours = await batches.known_to_us(tx, self._user_id)
        names = {_name(record, chunk) for chunk in chunks}
        perhaps = False
        async for batch in port.newest(record.submitted_at - SKEW):
            if batch.id in ours:
                continue
            if not batch.ended:
                perhaps = perhaps or batch.items >= len(chunks)
            elif await _is_named(port, batch, names):
                return batch, False
        return None, perhaps

    async def _handed_over(self, ctx: Context, record: BatchRecord, provider_id: str) -> None:
        parts, user_id = self._parts, self._user_id
        async with parts.database.user(user_id) as tx:
            await batches.submitted(tx, user_id, record.id, provider_id)
            await self._poll_again(ctx, tx, record, 0)
        parts.reached(Step.SUBMITTED)
        log.info("batch_submitted", batch=str(record.id))

    # Asking for it.

    async def _ask_for(
        self,
        ctx: Context,
        port: Batches,
        record: BatchRecord,
        chunks: Sequence[ChunkRecord],
        polls: int,
    ) -> None:
        assert record.provider_id is not None
        now = self._parts.clock.now()
        late = now - (record.submitted_at or record.created_at) >= LONGEST
        try:
            batch = await port.retrieve(record.provider_id)
            if batch.ended:
                await self._read(ctx, port, record, chunks)
                await self._end(ctx, record, "ended", None)
                return
        except ProviderError as error:
            vanished = error.http_status == 404
            if not vanished and not late:
                raise
            reason = "The provider does not know it any more." if vanished else error.detail
            await self._end(ctx, record, "gone", reason)
            return
        if late:
            with suppress(ProviderError):
                await port.cancel(record.provider_id)
            await self._end(ctx, record, "gone", "It was not answered within a day.")
        else:
            await self._later(ctx, record, polls + 1)

    async def _read(
        self, ctx: Context, port: Batches, record: BatchRecord, chunks: Sequence[ChunkRecord]
    ) -> None:
        """Store what the results tell. Raises ProviderOutage if some of them are not there."""
        assert record.provider_id is not None
        by_name = {_name(record, chunk): chunk for chunk in chunks}
        scenes: dict[UUID, Scene] = {}
        async with port.results(record.provider_id) as results:
            async for result in results:
                chunk = by_name.pop(result.name, None)
                if chunk is not None:
                    await self._settle(
                        ctx, await self._scene(scenes, chunk.segment_id), chunk, result
                    )
                    self._parts.reached(Step.RESULT)
        if by_name:
            raise ProviderOutage("The results of the batch are not complete.")

    async def _settle(
        self, ctx: Context, scene: Scene, chunk: ChunkRecord, result: ItemResult
    ) -> None:
        if result.outcome is ItemOutcome.SUCCEEDED and result.answer is not None:
            answered = await self._segments.ask(scene, chunk, given=result.answer)
            await self._segments.settle(ctx, scene, chunk, answered)
            return
        async with self._parts.database.user(self._user_id) as tx:
            await extraction.failed(
                tx, self._user_id, chunk.id, Spent(calls=1), result.error, attempt=True
            )
        log.warning("batch_item_failed", outcome=result.outcome.value, chunk=str(chunk.id))

    # Ending.

    async def _later(self, ctx: Context, record: BatchRecord, polls: int) -> None:
        async with self._parts.database.user(self._user_id) as tx:
            await self._poll_again(ctx, tx, record, polls)

    async def _poll_again(self, ctx: Context, tx: object, record: BatchRecord, polls: int) -> None:
        """Replaces the message that is being handled, which is thereby done."""
        await ctx.tell_durable(
            tx, keeper_of(self._user_id), PollBatch(batch_id=record.id, polls=polls),
            at=self._parts.clock.now() + self._parts.pause(polls),
            lane=batch_lane(record.id), key="poll",
        )  # fmt: skip

    async def _end(
        self,
        ctx: Context,
        record: BatchRecord,
        state: Literal["ended", "gone"],
        reason: str | None,
        *,
        now: bool = False,
        attempt: bool = True,
    ) -> None:
        """Nothing more will come of it: what it left undone waits again; with `now`, for a direct
        call. `attempt`: it was one."""
        parts, user_id = self._parts, self._user_id
        async with parts.database.user(user_id) as tx:
            for chunk in await extraction.of_batch(tx, user_id, record.id):
                await extraction.failed(
                    tx, user_id, chunk.id, Spent(), reason or "No result.", attempt=attempt
                )
            await batches.close(tx, user_id, record.id, state, parts.clock.now(), reason)
            for segment_id in await extraction.left_by(tx, user_id, record.id):
                await self._segments.again(ctx, tx, segment_id, now=now)
            await ctx.done(tx)
        log.info("batch_ended", batch=str(record.id), state=state)


def _name(record: BatchRecord, chunk: ChunkRecord) -> str:
    """An item's name: that of the chunk, and enough of the batch's to tell its tries apart."""
    return f"{chunk.id.hex}-{record.id.hex[-12:]}"


async def _is_named(port: Batches, batch: Batch, names: set[str]) -> bool:
    """Whether the first result of a batch bears one of these names."""
    try:
        async with port.results(batch.id) as results:
            async for result in results:
                return result.name in names
    except ProviderRejected:
        # It has gone meanwhile, or its results have.
        return False
    return False
