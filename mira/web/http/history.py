"""The one conversation and its messages."""

from __future__ import annotations

from typing import Any

import msgspec

from mira.errors import NotFound, ValidationFailed
from mira.messages.content import ToolResult
from mira.store import history, operation
from mira.web.endpoint import Call, Endpoint
from mira.web.models import (
    ConversationView,
    Message,
    MessagePage,
    MessagesQuery,
    ResultQuery,
    ToolResultPart,
)
from mira.web.reading import BigInt, Int, cut, read_cursor, storable, write_cursor


async def conversation(call: Call[None, None]) -> ConversationView:
    async with call.services.database.user(call.user_id) as tx:
        record = await operation.conversation(tx, call.user_id)
    return ConversationView(**msgspec.structs.asdict(record))


async def list_messages(call: Call[MessagesQuery, None]) -> MessagePage:
    asked = call.query
    before = read_cursor(asked.cursor, tuple[BigInt, Int])
    within = _within(asked)
    async with call.services.database.user(call.user_id) as tx:
        records = await history.page(
            tx, call.user_id, before=before, limit=asked.limit + 1, within=within
        )
    records, more = cut(records, asked.limit)
    return MessagePage(
        messages=tuple(Message.of(record) for record in records),
        next_cursor=write_cursor(records[-1].turn_seq, records[-1].position) if more else None,
    )


async def get_message(call: Call[None, None]) -> Message:
    return Message.of(await _message(call))


async def get_result(call: Call[ResultQuery, None]) -> ToolResultPart:
    record = await _message(call)
    call_id = call.request.path_params["call_id"]
    for block in record.blocks:
        if isinstance(block, ToolResult) and block.call_id == call_id:
            return ToolResultPart.of(block, call.query.offset, call.query.limit)
    raise NotFound("This message holds no result of such a call.")


async def _message(call: Call[Any, None]) -> history.HistoryMessage:
    message_id = call.id("message_id")
    async with call.services.database.user(call.user_id) as tx:
        records = await history.of_ids(tx, call.user_id, [message_id])
    if not records:
        raise NotFound("There is no such message.")
    return records[0]


def _within(asked: MessagesQuery) -> history.Within:
    since = None if asked.since is None else storable("from", asked.since)
    until = None if asked.until is None else storable("to", asked.until)
    if since is not None and until is not None and since >= until:
        raise ValidationFailed("`from` must lie before `to`.", (("from", "not before `to`"),))
    return history.Within(segment_id=asked.segment_id, since=since, until=until)


ENDPOINTS = (
    Endpoint("POST", "/v1/conversation", conversation,
             "The one conversation: asking for a new one returns it again",
             scope="chat", answer=ConversationView),
    Endpoint("GET", "/v1/messages", list_messages,
             "Messages word for word, newest first: all, or those of a segment or a time",
             scope="read", query=MessagesQuery, answer=MessagePage),
    Endpoint("GET", "/v1/messages/{message_id}", get_message, "One message",
             scope="read", answer=Message),
    Endpoint("GET", "/v1/messages/{message_id}/results/{call_id}", get_result,
             "What a tool answered, whole or in parts",
             scope="read", query=ResultQuery, answer=ToolResultPart),
)  # fmt: skip
