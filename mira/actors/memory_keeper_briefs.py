"""The older part of a long open segment, compressed into one brief.

A new brief is made from the one before and the words of the turns since, never from a brief alone,
so that losses do not add up. The turns themselves stay as they are.
"""

from __future__ import annotations

from uuid import UUID

from mira.actors.memory_keeper_parts import KeeperParts, Step, zone_of
from mira.actors.memory_keeper_questions import Question, gives_up
from mira.actors.runtime.actor import Context
from mira.errors import NotFound, ProviderError
from mira.memory import chunks
from mira.memory.lived import brief
from mira.memory.lived.pieces import pieces
from mira.memory.lived.summary import said
from mira.memory.quoting import quoted
from mira.messages.base import Address
from mira.messages.memory import CompressSegment
from mira.messages.segment import BriefMade
from mira.store import briefs, extraction, history, model_calls, segments
from mira.store.briefs import Brief
from mira.store.database import Tx
from mira.store.turns import NewCall
from mira.telemetry import logger

log = logger("keeper")

PURPOSE = "brief"
#: Turns and characters of stored content that are read at once; more are left to the next brief.
TURNS, CHARACTERS = 400, 2_000_000


class Briefs:
    """Writes the briefs of one user."""

    def __init__(self, parts: KeeperParts, user_id: UUID) -> None:
        self._parts = parts
        self._user_id = user_id

    async def compress(self, ctx: Context, message: CompressSegment) -> None:
        """Write the brief of a segment that is still open, and tell the door.

        Raises what kept it from being written: then it is asked for again later. A model that
        fails three times is left alone until the segment has grown again.
        """
        parts, user_id = self._parts, self._user_id
        async with parts.database.user(user_id) as tx:
            old = await briefs.newest(tx, user_id, message.segment_id)
            made = old is not None and old.through_seq >= message.through_seq
            if made or not await self._is_open(tx, message.segment_id):
                if made:
                    await self._tell_door(ctx, tx, message.segment_id)
                await ctx.done(tx)
                return
            who = await extraction.who(tx, user_id)
            read = await history.of_segment(
                tx, user_id, message.segment_id, characters=CHARACTERS, turns=TURNS,
                after_seq=old.through_seq if old else 0,
            )  # fmt: skip
        parts.reached(Step.PLANNED)
        lines = chunks.lines_of([m for m in read if m.turn_seq <= message.through_seq], {})
        note, calls = old.text if old else "", list[NewCall]()
        for part in pieces(lines, max(1_500, parts.telling.characters - len(note))):
            answered = await parts.telling.ask(
                Question(
                    purpose=PURPOSE,
                    template="brief",
                    schema=brief.SCHEMA,
                    instructions={"user": who.name, "most": brief.WORDS},
                    data={
                        "note": quoted(note),
                        "lines": said(part, zone_of(who.timezone)),
                        "zone": who.timezone,
                    },
                ),
                brief.parse,
            )
            calls += answered.calls
            if answered.error is not None:
                await self._failed(ctx, calls, answered.error)
                return
            note = answered.taken()
            parts.reached(Step.ANSWERED)
        last = next((call for call in reversed(calls) if call.error is None), None)
        new = Brief(
            id=parts.ids.new(),
            segment_id=message.segment_id,
            through_seq=message.through_seq,
            text=note,
            made_at=parts.clock.now(),
        )
        async with parts.database.user(user_id) as tx:
            await model_calls.book(tx, user_id, calls, parts.clock.now())
            # It may have ended meanwhile: then nobody needs it.
            if note and await self._is_open(tx, message.segment_id):
                await briefs.write(
                    tx, user_id, new,
                    provider=last.provider if last else None, model=last.model if last else None,
                )  # fmt: skip
                await self._tell_door(ctx, tx, message.segment_id)
            await ctx.done(tx)
        parts.reached(Step.STORED)
        log.info("segment_compressed", segment=str(message.segment_id), calls=len(calls))

    async def _failed(self, ctx: Context, calls: list[NewCall], error: ProviderError) -> None:
        parts, user_id = self._parts, self._user_id
        async with parts.database.user(user_id) as tx:
            await model_calls.book(tx, user_id, calls, parts.clock.now())
            if gives_up(ctx, error):
                log.warning("brief_given_up", code=error.code)
                await ctx.done(tx)
                return
        raise error

    async def _is_open(self, tx: Tx, segment_id: UUID) -> bool:
        try:
            return (await segments.get(tx, self._user_id, segment_id)).state.open
        except NotFound:
            return False

    async def _tell_door(self, ctx: Context, tx: Tx, segment_id: UUID) -> None:
        await ctx.tell_durable(
            tx, Address("continuum", str(self._user_id)), BriefMade(segment_id=segment_id),
            lane="segments", key=f"brief/{segment_id}",
        )  # fmt: skip
