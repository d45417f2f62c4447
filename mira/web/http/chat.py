"""One turn: send a message, get the answer whole or as it is written."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TypeAlias
from uuid import UUID

import anyio
from starlette.types import ASGIApp

from mira.actors.conversations import Receipt
from mira.errors import Unavailable
from mira.messages.stream import (
    AnyTurnEvent,
    Cancelled,
    Completed,
    Interrupted,
    ThinkingAdded,
    TurnError,
)
from mira.web import problems
from mira.web.endpoint import Call, Endpoint
from mira.web.models import ChatAccepted, ChatReply, ChatRequest
from mira.web.sse import EventStream

_Call: TypeAlias = Call[None, ChatRequest]


async def chat(call: _Call) -> ASGIApp | ChatReply:
    """Accept, then stream or wait. A client that leaves does not stop the turn."""
    asked = call.body
    request_id = asked.request_id if asked.request_id is not None else str(call.services.ids.new())
    receipt = await call.services.conversations.accept(
        call.user_id,
        request_id=request_id,
        content=asked.message,
        attachments=asked.attachments,
        source=call.request_id,
    )
    if asked.include_thinking:
        call.context.wanted.add(receipt.turn_id)
    if asked.stream:
        return EventStream(
            call.context,
            lambda: call.services.conversations.follow(call.user_id, receipt.turn_id),
            request_id=call.request_id,
            thinking=asked.include_thinking,
            first=ChatAccepted(
                turn_id=receipt.turn_id, request_id=request_id, duplicate=receipt.duplicate
            ),
        )
    return await _whole(call, receipt)


async def _whole(call: _Call, receipt: Receipt) -> ASGIApp | ChatReply:
    """Wait for the end of the turn, or for the client to leave."""
    answer: ASGIApp | ChatReply | None = None

    async def leave(scope: anyio.CancelScope) -> None:
        while (await call.request.receive())["type"] != "http.disconnect":
            pass
        scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(leave, tasks.cancel_scope)
        async with call.services.conversations.follow(call.user_id, receipt.turn_id) as batches:
            answer = await _outcome(call, receipt, batches)
        tasks.cancel_scope.cancel()
    if answer is None:
        raise Unavailable("The connection ended before the answer.")
    return answer


async def _outcome(
    call: _Call, receipt: Receipt, batches: AsyncIterator[tuple[AnyTurnEvent, ...]]
) -> ASGIApp | ChatReply:
    thinking: list[str] = []
    attempt = 0
    async for batch in batches:
        for event in batch:
            if event.attempt > attempt:
                attempt = event.attempt
                thinking.clear()
            match event:
                case ThinkingAdded():
                    thinking.append(event.text)
                case Completed():
                    return ChatReply(
                        turn_id=receipt.turn_id,
                        request_id=receipt.request_id,
                        reply=event.reply,
                        usage=event.usage,
                        memories=event.memories,
                        tools_used=event.tools_used,
                        timings=event.timings,
                        thinking="".join(thinking) if call.body.include_thinking else None,
                    )
                case TurnError():
                    return _without_answer(call, receipt.turn_id, event.code, event.detail)
                case Cancelled():
                    detail = "The turn was cancelled."
                    return _without_answer(call, receipt.turn_id, "conflict", detail, event.text)
                case Interrupted():
                    detail = "The turn was interrupted; it can be tried again."
                    return _without_answer(call, receipt.turn_id, "unavailable", detail, event.text)
    raise Unavailable("The turn is not over; follow it at /v1/turns/{id}/events.")


def _without_answer(
    call: _Call, turn_id: UUID, code: str, detail: str, text: str | None = None
) -> ASGIApp:
    return problems.respond(
        problems.turn_problem(code, detail, call.request_id, str(turn_id), text)
    )


ENDPOINTS = (
    Endpoint(
        "POST", "/v1/chat", chat,
        "Send a message and get the answer: whole, or with `stream` as server-sent events",
        scope="chat", body=ChatRequest, answer=ChatReply, streams=True, problems=(409, 502, 503),
    ),
)  # fmt: skip
