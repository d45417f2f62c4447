"""What led to an answer: what was searched, found, shown and used, the prompt, and the calls."""

from __future__ import annotations

import msgspec

from mira.store import traces, turn_calls, turn_traces, turns
from mira.web.endpoint import Call, Endpoint
from mira.web.trace_models import CallOfModel, Retrieval, TurnTrace


async def get_turn_trace(call: Call[None, None]) -> TurnTrace:
    turn_id = call.id("turn_id")
    async with call.services.database.user(call.user_id) as tx:
        record = await turns.get(tx, call.user_id, turn_id)
        calls = await turn_calls.of_turn(tx, call.user_id, turn_id)
        searches = await traces.of_turn(tx, call.user_id, turn_id)
        account = await turn_traces.newest(tx, call.user_id, turn_id)
    return TurnTrace(
        turn_id=turn_id,
        state=record.state,
        attempt=record.attempt,
        usage=record.usage,
        timings=record.timings,
        calls=tuple(CallOfModel(**msgspec.structs.asdict(one)) for one in calls),
        retrievals=tuple(Retrieval.of(one) for one in searches),
        account=account,
    )


ENDPOINTS = (
    Endpoint("GET", "/v1/turns/{turn_id}/trace", get_turn_trace,
             "What led to an answer: phrases, searches with their scores, sections of the prompt, "
             "model calls, timings",
             scope="read", answer=TurnTrace),
)  # fmt: skip
