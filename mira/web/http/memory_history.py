"""What happened to memories, and taking it back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from mira.errors import NotFound
from mira.store import memories as rows
from mira.store import memory_steps
from mira.store.memory_events import MemoryEvent, State
from mira.web import memory_words
from mira.web.endpoint import Call, Endpoint
from mira.web.http.memories import ref
from mira.web.memory_models import MemoryEventView, MemoryHistory, UndoneStep, UndoRequest


async def list_memory_events(call: Call[None, None]) -> MemoryHistory:
    return MemoryHistory(events=await _views(call, await _history(call)))


async def undo_memory_event(call: Call[None, UndoRequest]) -> UndoneStep:
    event_id = call.body.event_id
    if all(event.id != event_id for event in await _history(call)):
        raise NotFound("This memory has no such event.")
    done = await call.services.memories.undo(call.user_id, event_id, actor="user")
    return UndoneStep(step=done.step, events=await _views(call, done.events))


async def _history(call: Call[Any, Any]) -> Sequence[MemoryEvent]:
    """Of a memory that is gone only by its id: its short id may be another's by now."""
    name = ref(call)
    try:
        return await call.services.memories.history(call.user_id, UUID(name))
    except ValueError:
        return await call.services.memories.history(call.user_id, name)


async def _views(
    call: Call[Any, Any], events: Sequence[MemoryEvent]
) -> tuple[MemoryEventView, ...]:
    spoken_of = {one for event in events for one in memory_words.spoken_of(event)}
    async with call.services.database.user(call.user_id) as tx:
        names = await rows.find(tx, call.user_id, list(spoken_of))
        touched = await memory_steps.touched(tx, call.user_id, [event.step for event in events])
    return tuple(
        MemoryEventView(
            id=event.id,
            kind=event.kind,
            actor=event.actor,
            turn_id=event.turn_id,
            at=event.at,
            step=event.step,
            undone_by=event.undone_by,
            summary=memory_words.summary(event, names),
            undo=memory_words.undoing(
                event, names, len(touched.get(event.step, frozenset()) - {event.memory_id})
            ),
            before=_shown(event.before),
            after=_shown(event.after),
        )
        for event in events
    )


def _shown(state: State | None) -> dict[str, Any] | None:
    if state is None:
        return None
    shown: dict[str, Any] = msgspec.to_builtins(state)
    return shown


ENDPOINTS = (
    Endpoint("GET", "/v1/memories/{memory_id}/events", list_memory_events,
             "What happened to a memory, oldest first; by its id also of one that was deleted",
             scope="read", answer=MemoryHistory),
    Endpoint("POST", "/v1/memories/{memory_id}/undo", undo_memory_event,
             "Undo the whole step of an event, if nothing that it changed has changed since",
             scope="chat", body=UndoRequest, answer=UndoneStep, problems=(409,)),
)  # fmt: skip
