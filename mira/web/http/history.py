"""The one conversation: its messages and segments."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import msgspec

from mira.store import history, operation, segments
from mira.web.endpoint import Call, Endpoint
from mira.web.models import (
    ConversationView,
    Message,
    MessagePage,
    Paging,
    Segment,
    SegmentPage,
)
from mira.web.reading import BigInt, Int, cut, read_cursor, write_cursor


async def conversation(call: Call[None, None]) -> ConversationView:
    async with call.services.database.user(call.user_id) as tx:
        record = await operation.conversation(tx, call.user_id)
    return ConversationView(**msgspec.structs.asdict(record))


async def list_messages(call: Call[Paging, None]) -> MessagePage:
    before = read_cursor(call.query.cursor, tuple[BigInt, Int])
    async with call.services.database.user(call.user_id) as tx:
        records = await history.page(tx, call.user_id, before=before, limit=call.query.limit + 1)
    records, more = cut(records, call.query.limit)
    return MessagePage(
        messages=tuple(Message.of(record) for record in records),
        next_cursor=write_cursor(records[-1].turn_seq, records[-1].position) if more else None,
    )


async def list_segments(call: Call[Paging, None]) -> SegmentPage:
    before = read_cursor(call.query.cursor, tuple[datetime, UUID])
    async with call.services.database.user(call.user_id) as tx:
        records = await segments.page(tx, call.user_id, before=before, limit=call.query.limit + 1)
    records, more = cut(records, call.query.limit)
    return SegmentPage(
        segments=tuple(Segment.of(record) for record in records),
        next_cursor=write_cursor(records[-1].opened_at, records[-1].id) if more else None,
    )


async def get_segment(call: Call[None, None]) -> Segment:
    async with call.services.database.user(call.user_id) as tx:
        return Segment.of(await segments.get(tx, call.user_id, call.id("segment_id")))


ENDPOINTS = (
    Endpoint("POST", "/v1/conversation", conversation,
             "The one conversation: asking for a new one returns it again",
             scope="chat", answer=ConversationView),
    Endpoint("GET", "/v1/messages", list_messages, "Messages, newest first",
             scope="read", query=Paging, answer=MessagePage),
    Endpoint("GET", "/v1/segments", list_segments, "Segments, newest first",
             scope="read", query=Paging, answer=SegmentPage),
    Endpoint("GET", "/v1/segments/{segment_id}", get_segment, "One segment",
             scope="read", answer=Segment),
)  # fmt: skip
