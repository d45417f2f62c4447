"""Segments: listed, read, paused, resumed, ended, summed up again; and the prompt as it stands."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from mira.actors.summaries_again import waits
from mira.store import segments, summaries
from mira.web.endpoint import Call, Endpoint
from mira.web.models import Paging
from mira.web.reading import cut, read_cursor, write_cursor
from mira.web.segment_models import Section, Segment, SegmentPage, WorkingMemory


async def list_segments(call: Call[Paging, None]) -> SegmentPage:
    before = read_cursor(call.query.cursor, tuple[datetime, UUID])
    async with call.services.database.user(call.user_id) as tx:
        records = await segments.page(tx, call.user_id, before=before, limit=call.query.limit + 1)
        records, more = cut(records, call.query.limit)
        ids = [record.id for record in records]
        made = await summaries.of_segments(tx, call.user_id, ids)
        waiting = await waits(tx, call.user_id, ids)
    return SegmentPage(
        segments=tuple(
            Segment.of(record, made.get(record.id), waiting.get(record.id)) for record in records
        ),
        next_cursor=write_cursor(records[-1].opened_at, records[-1].id) if more else None,
    )


async def get_segment(call: Call[None, None]) -> Segment:
    return await _read(call, call.id("segment_id"))


async def pause(call: Call[None, None]) -> Segment:
    return await _read(call, await call.services.conversations.pause(call.user_id))


async def resume(call: Call[None, None]) -> Segment:
    return await _read(call, await call.services.conversations.resume(call.user_id))


async def collapse(call: Call[None, None]) -> Segment:
    return await _read(call, await call.services.conversations.collapse(call.user_id))


async def retry_summary(call: Call[None, None]) -> Segment:
    segment_id = call.id("segment_id")
    await call.services.conversations.summarise_again(call.user_id, segment_id)
    return await _read(call, segment_id)


async def working_memory(call: Call[None, None]) -> WorkingMemory:
    renders = await call.services.renders.last(call.user_id)
    return WorkingMemory(sections=tuple(map(Section.of, renders)))


async def _read(call: Call[None, None], segment_id: UUID) -> Segment:
    async with call.services.database.user(call.user_id) as tx:
        record = await segments.get(tx, call.user_id, segment_id)
        made = await summaries.of_segments(tx, call.user_id, [segment_id])
        waiting = await waits(tx, call.user_id, [segment_id])
    return Segment.of(record, made.get(segment_id), waiting.get(segment_id))


ENDPOINTS = (
    Endpoint("GET", "/v1/segments", list_segments, "Segments with their summaries, newest first",
             scope="read", query=Paging, answer=SegmentPage),
    Endpoint("POST", "/v1/segments/active/pause", pause,
             "Let no silence end the open segment until somebody speaks",
             scope="chat", answer=Segment, problems=(404, 503)),
    Endpoint("POST", "/v1/segments/active/resume", resume,
             "End the pause of the open segment; silence counts from now",
             scope="chat", answer=Segment, problems=(404, 503)),
    Endpoint("POST", "/v1/segments/active/collapse", collapse,
             "End the open segment now; its summary and memories follow by themselves",
             scope="chat", answer=Segment, problems=(404, 503)),
    Endpoint("GET", "/v1/segments/{segment_id}", get_segment, "One segment with its summary",
             scope="read", answer=Segment),
    Endpoint("POST", "/v1/segments/{segment_id}/retry", retry_summary,
             "Try a summary again now that failed; asking twice changes nothing more",
             scope="chat", answer=Segment, problems=(409,)),
    Endpoint("GET", "/v1/working-memory", working_memory,
             "The sections of the last prompt, as they were sent",
             scope="read", answer=WorkingMemory),
)  # fmt: skip
