"""What led to an answer: what was searched, found, shown and used, the prompt, and the calls."""

from __future__ import annotations

from anyio import to_thread

from mira.store import history, traces, turn_calls, turn_traces, turns
from mira.web.endpoint import Call, Endpoint
from mira.web.trace_models import CallOfModel, Retrieval, TurnTrace, tools_of, total


async def get_turn_trace(call: Call[None, None]) -> TurnTrace:
    turn_id = call.id("turn_id")
    async with call.services.database.user(call.user_id) as tx:
        record = await turns.get(tx, call.user_id, turn_id)
        calls = await turn_calls.of_turn(tx, call.user_id, turn_id)
        searches = await traces.of_turn(tx, call.user_id, turn_id)
        account = await turn_traces.newest(tx, call.user_id, turn_id)
        messages = await history.of_turn(tx, call.user_id, turn_id)
    costed = await to_thread.run_sync(lambda: tuple(map(CallOfModel.of, calls)))
    return TurnTrace(
        turn_id=turn_id,
        state=record.state,
        attempt=record.attempt,
        usage=record.usage,
        timings=record.timings,
        calls=costed,
        cost_usd=total(costed),
        tools=tools_of(messages),
        retrievals=tuple(Retrieval.of(one) for one in searches),
        account=account,
    )


ENDPOINTS = (
    Endpoint("GET", "/v1/turns/{turn_id}/trace", get_turn_trace,
             "What led to an answer: phrases, searches with their scores, sections of the prompt, "
             "calls of models and tools, timings, cost",
             scope="read", answer=TurnTrace),
)  # fmt: skip
