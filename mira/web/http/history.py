"""The one conversation and its messages."""

from __future__ import annotations

import msgspec

from mira.errors import NotFound, ValidationFailed
from mira.store import history, operation
from mira.web.endpoint import Call, Endpoint
from mira.web.models import (
    ConversationView,
    Message,
    MessagePage,
    MessagesQuery,
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
    message_id = call.id("message_id")
    async with call.services.database.user(call.user_id) as tx:
        records = await history.of_ids(tx, call.user_id, [message_id])
    if not records:
        raise NotFound("There is no such message.")
    return Message.of(records[0])


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
)  # fmt: skip
