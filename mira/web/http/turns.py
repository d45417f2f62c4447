"""Turns: listed, read, followed, cancelled, tried again."""

from __future__ import annotations

from starlette.types import ASGIApp

from mira.actors.conversations import Receipt
from mira.errors import ValidationFailed
from mira.store import history, turns
from mira.web.endpoint import Call, Endpoint
from mira.web.models import EventsQuery, Paging, Turn, TurnDetail, TurnPage, TurnStanding
from mira.web.reading import BigInt, cut, read_cursor, write_cursor
from mira.web.sse import EventStream


async def list_turns(call: Call[Paging, None]) -> TurnPage:
    cursor = read_cursor(call.query.cursor, tuple[BigInt])
    async with call.services.database.user(call.user_id) as tx:
        records = await turns.page(
            tx, call.user_id, before=cursor[0] if cursor else None, limit=call.query.limit + 1
        )
    records, more = cut(records, call.query.limit)
    return TurnPage(
        turns=tuple(Turn.of(record) for record in records),
        next_cursor=write_cursor(records[-1].seq) if more else None,
    )


async def get_turn(call: Call[None, None]) -> TurnDetail:
    turn_id = call.id("turn_id")
    async with call.services.database.user(call.user_id) as tx:
        record = await turns.get(tx, call.user_id, turn_id)
        messages = await history.of_turn(tx, call.user_id, turn_id)
    return TurnDetail.with_messages(record, messages)


async def events(call: Call[EventsQuery, None]) -> ASGIApp:
    turn_id = call.id("turn_id")
    after = call.query.after
    if after is None:
        after = _last_event_id(call.headers.get("last-event-id"))
    return EventStream(
        call.context,
        lambda: call.services.conversations.follow(call.user_id, turn_id, after),
        request_id=call.request_id,
        thinking=call.query.include_thinking or turn_id in call.context.wanted,
    )


async def cancel(call: Call[None, None]) -> TurnStanding:
    turn_id = call.id("turn_id")
    state = await call.services.conversations.cancel(call.user_id, turn_id)
    return TurnStanding(turn_id=turn_id, state=state)


async def retry(call: Call[None, None]) -> Receipt:
    return await call.services.conversations.retry(
        call.user_id, call.id("turn_id"), source=call.request_id
    )


def _last_event_id(value: str | None) -> int:
    if not value:
        return 0
    if not (value.isascii() and value.isdigit() and len(value) <= 15):
        raise ValidationFailed(
            "Last-Event-ID is the number of an event.", (("Last-Event-ID", "not a number"),)
        )
    return int(value)


ENDPOINTS = (
    Endpoint("GET", "/v1/turns", list_turns, "Turns, newest first",
             scope="read", query=Paging, answer=TurnPage),
    Endpoint("GET", "/v1/turns/{turn_id}", get_turn, "One turn with its messages",
             scope="read", answer=TurnDetail),
    Endpoint("GET", "/v1/turns/{turn_id}/events", events,
             "Follow a turn from an event number on, as server-sent events",
             scope="read", query=EventsQuery, answer="text/event-stream", headless=True),
    Endpoint("POST", "/v1/turns/{turn_id}/cancel", cancel,
             "Stop a turn; what was written is kept, a turn that has ended stays as it is",
             scope="chat", answer=TurnStanding),
    Endpoint("POST", "/v1/turns/{turn_id}/retry", retry,
             "Try the newest turn again if it failed, was cancelled or interrupted",
             scope="chat", answer=Receipt, problems=(409,)),
)  # fmt: skip
