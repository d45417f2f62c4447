"""The one conversation and its messages."""

from __future__ import annotations

import msgspec

from mira.errors import NotFound
from mira.store import history, operation
from mira.web.endpoint import Call, Endpoint
from mira.web.models import (
    ConversationView,
    Message,
    MessagePage,
    Paging,
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


async def get_message(call: Call[None, None]) -> Message:
    message_id = call.id("message_id")
    async with call.services.database.user(call.user_id) as tx:
        records = await history.of_ids(tx, call.user_id, [message_id])
    if not records:
        raise NotFound("There is no such message.")
    return Message.of(records[0])


ENDPOINTS = (
    Endpoint("POST", "/v1/conversation", conversation,
             "The one conversation: asking for a new one returns it again",
             scope="chat", answer=ConversationView),
    Endpoint("GET", "/v1/messages", list_messages, "Messages, newest first",
             scope="read", query=Paging, answer=MessagePage),
    Endpoint("GET", "/v1/messages/{message_id}", get_message, "One message",
             scope="read", answer=Message),
)  # fmt: skip
