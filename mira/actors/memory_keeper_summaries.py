"""What a segment was, written down once: read, told by a model, checked, stored, made known.

The summary, what its check found, the title and what it all cost are one transaction, in which the
door is told durably. Where there is a summary already the door is only told once more.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Literal, TypeAlias
from uuid import UUID
from zoneinfo import ZoneInfo

from anyio import to_thread

from mira.actors.memory_keeper_checking import Checked, Checking, Earlier, give_vectors
from mira.actors.memory_keeper_parts import (
    SUMMARIES,
    KeeperParts,
    Step,
    keeper_of,
    late_lane,
    zone_of,
)
from mira.actors.memory_keeper_questions import gives_up
from mira.actors.memory_keeper_telling import Material, Telling, Told
from mira.actors.runtime.actor import Context
from mira.errors import MiraError, NotFound, ProviderError
from mira.memory import chunks
from mira.memory.chunks import Line
from mira.memory.lived.drift import Drift, Source
from mira.memory.lived.plain import plain
from mira.memory.lived.summary import Summary, remembered
from mira.messages.base import Address
from mira.messages.memory import RecheckDrift, SummariseSegment
from mira.messages.segment import SummaryMade
from mira.store import drift_checks, extraction, model_calls, segments, summaries
from mira.store.database import Tx
from mira.store.drift_checks import DriftCheck
from mira.store.summaries import NewSummary, SummaryRecord
from mira.store.turns import NewCall
from mira.telemetry import logger

log = logger("keeper")

Kind: TypeAlias = Literal["made", "again"]

#: Summaries of earlier segments that a model is shown.
SHOWN = 5
#: After so many new summaries an old one is looked at again.
RECHECK_EVERY = 20
#: When a segment is tried again that no model could tell.
LATER = timedelta(days=1)
#: What a model that cannot tell has made up in part is not taken from this share of sentences on.
USABLE = 0.34
#: Summaries that are given a vector along with a new one.
ENCODED = 20


class Summaries:
    """Writes the summaries of one user."""

    def __init__(self, parts: KeeperParts, user_id: UUID) -> None:
        self._parts = parts
        self._user_id = user_id

    async def summarise(self, ctx: Context, message: SummariseSegment) -> None:
        """Write the summary of a segment that has ended, and tell the door.

        Raises what kept it from being told: then it is asked for again later. What a model failed
        to tell three times waits for a day, in a lane of its own.
        """
        parts, user_id, segment_id = self._parts, self._user_id, message.segment_id
        able = parts.tells()
        async with parts.database.user(user_id) as tx:
            try:
                segment = await segments.get(tx, user_id, segment_id)
            except NotFound:
                await ctx.done(tx)
                return
            old = (await summaries.of_segments(tx, user_id, [segment_id])).get(segment_id)
            if segment.state.open or (old is not None and (old.model is not None or not able)):
                if old is not None:
                    await self._tell_door(ctx, tx, segment_id)
                await ctx.done(tx)
                return
            lines, user, zone = await self._read(tx, segment_id)
            known = await summaries.newest(tx, user_id, before=segment.opened_at, limit=SHOWN)
        parts.reached(Step.PLANNED)
        source = await _source(lines, zone, user)
        checking = Checking(parts, user_id, segment_id, source, _earlier(known))
        material = Material(
            lines=tuple(lines),
            user=user,
            zone=zone,
            source=source,
            known=tuple(
                remembered(one.started_at, one.title, one.precis, zone) for one in reversed(known)
            ),
        )
        telling = Telling(parts, material, checking)
        if not able or not lines:
            told = await self._plainly(telling, material, checking, able=able)
            await self._write(ctx, segment_id, told, telling.calls, by_model=not lines)
            return
        try:
            told = await telling.tell()
        except MiraError as error:
            await self._failed(ctx, message, telling.calls, error)
            return
        await self._write(ctx, segment_id, told, telling.calls, by_model=True)
        await give_vectors(parts, user_id, limit=ENCODED)

    async def recheck(self, ctx: Context) -> None:
        """Hold the summary that was not looked at for longest against its segment once more."""
        parts, user_id = self._parts, self._user_id
        await give_vectors(parts, user_id, limit=ENCODED)
        async with parts.database.user(user_id) as tx:
            segment_id = await drift_checks.longest_unchecked(tx, user_id)
            if segment_id is None:
                await ctx.done(tx)
                return
            segment = await segments.get(tx, user_id, segment_id)
            record = (await summaries.of_segments(tx, user_id, [segment_id]))[segment_id]
            lines, user, zone = await self._read(tx, segment_id)
            known = await summaries.newest(tx, user_id, before=segment.opened_at, limit=SHOWN)
        checking = Checking(
            parts, user_id, segment_id, await _source(lines, zone, user), _earlier(known)
        )
        checked = await checking.check(
            Summary(
                trace=record.trace, precis=record.precis, title=record.title,
                complexity=record.complexity,
            )
        )  # fmt: skip
        async with parts.database.user(user_id) as tx:
            await drift_checks.write(
                tx, user_id, self._check(segment_id, checked, kind="again", corrected=False)
            )
            await ctx.done(tx)
        log.info(
            "drift_rechecked", segment=str(segment_id), sentences=checked.drift.sentences,
            flagged=len(checked.drift.flags),
        )  # fmt: skip

    async def _read(self, tx: Tx, segment_id: UUID) -> tuple[list[Line], str, ZoneInfo]:
        """What was said, by whom, and in which time zone."""
        who = await extraction.who(tx, self._user_id)
        messages = await extraction.messages(tx, self._user_id, segment_id)
        return chunks.lines_of(messages, {}), who.name, zone_of(who.timezone)

    async def _plainly(
        self, telling: Telling, material: Material, checking: Checking, *, able: bool
    ) -> Told:
        """A summary without a model that can tell: its words if they will do, else the user's."""
        if material.lines and not able:
            try:
                told = await telling.tell_briefly()
            except ProviderError as error:
                log.info("summary_without_model", code=error.code)
            else:
                checked = await checking.check(told)
                if checked.drift.score <= USABLE:
                    return Told(told, checked, False, 1)
        told = plain(material.lines, material.user, material.zone)
        return Told(told, Checked(Drift(sentences=0)), False, 1)

    async def _write(
        self,
        ctx: Context,
        segment_id: UUID,
        told: Told,
        calls: list[NewCall],
        *,
        by_model: bool,
    ) -> None:
        parts, user_id = self._parts, self._user_id
        last = next((call for call in reversed(calls) if call.error is None), None)
        checked = told.checked
        new = NewSummary(
            segment_id=segment_id,
            title=told.summary.title,
            trace=told.summary.trace,
            precis=told.summary.precis,
            complexity=told.summary.complexity,
            parts=max(1, told.parts),
            drift=checked.drift.score,
            provider=last.provider if last else None,
            # Of nothing there is nothing to be told better.
            model=(last.model if last else "none") if by_model else None,
            vector=checked.vector,
            vector_model=checked.vector_model,
        )
        async with parts.database.user(user_id) as tx:
            now = parts.clock.now()
            await model_calls.book(tx, user_id, calls, now)
            written = await summaries.write(tx, user_id, new, now)
            if written:
                await drift_checks.write(
                    tx, user_id,
                    self._check(segment_id, checked, kind="made", corrected=told.corrected),
                )  # fmt: skip
                if await drift_checks.due(tx, user_id, every=RECHECK_EVERY):
                    await ctx.tell_durable(
                        tx, keeper_of(user_id), RecheckDrift(), lane=SUMMARIES, key="recheck"
                    )
            await self._tell_door(ctx, tx, segment_id)
            await ctx.done(tx)
        parts.reached(Step.WRITTEN)
        log.info(
            "segment_summarised", segment=str(segment_id), written=written, parts=told.parts,
            calls=len(calls), sentences=checked.drift.sentences,
            flagged=len(checked.drift.flags), corrected=told.corrected, by_model=by_model,
        )  # fmt: skip

    async def _failed(
        self, ctx: Context, message: SummariseSegment, calls: list[NewCall], error: MiraError
    ) -> None:
        """Book what it cost; raises the error, unless it is to be tried again much later."""
        parts, user_id, segment_id = self._parts, self._user_id, message.segment_id
        late = isinstance(error, ProviderError) and gives_up(ctx, error)
        async with parts.database.user(user_id) as tx:
            now = parts.clock.now()
            await model_calls.book(tx, user_id, calls, now)
            if late:
                tries = ctx.durable.attempts + 1 if ctx.durable else 1
                await ctx.done(tx)
                await ctx.tell_durable(
                    tx, keeper_of(user_id),
                    SummariseSegment(segment_id=segment_id, failed=message.failed + tries),
                    at=now + LATER, lane=late_lane(segment_id), key=str(segment_id),
                )  # fmt: skip
        log.warning("summary_failed", code=error.code, segment=str(segment_id), late=late)
        if not late:
            raise error

    async def _tell_door(self, ctx: Context, tx: Tx, segment_id: UUID) -> None:
        await ctx.tell_durable(
            tx, Address("continuum", str(self._user_id)), SummaryMade(segment_id=segment_id),
            lane="segments", key=str(segment_id),
        )  # fmt: skip

    def _check(
        self, segment_id: UUID, checked: Checked, *, kind: Kind, corrected: bool
    ) -> DriftCheck:
        return DriftCheck(
            id=self._parts.ids.new(),
            segment_id=segment_id,
            at=self._parts.clock.now(),
            kind=kind,
            sentences=checked.drift.sentences,
            flagged=checked.drift.record,
            drift=checked.drift.score,
            corrected=corrected,
            nearest=checked.nearest,
        )


async def _source(lines: list[Line], zone: ZoneInfo, user: str) -> Source:
    """Beside the event loop: of a long segment there is much to read."""
    return await to_thread.run_sync(lambda: Source(lines, zone, also=(user,)))


def _earlier(known: list[SummaryRecord]) -> list[Earlier]:
    return [Earlier(one.segment_id, f"{one.trace} {one.precis}") for one in known]
