"""Calls that wait for the user's word."""

from __future__ import annotations

from mira.store import effects
from mira.web.endpoint import Call, Endpoint
from mira.web.models import ActionAnswer, ActionDecision, ActionList


async def list_actions(call: Call[None, None]) -> ActionList:
    async with call.services.database.user(call.user_id) as tx:
        waiting = await effects.confirmations(tx, call.user_id, call.services.clock.now())
    return ActionList(actions=tuple(waiting))


async def decide(call: Call[None, ActionAnswer]) -> ActionDecision:
    action_id = call.id("action_id")
    await call.services.conversations.confirm(call.user_id, action_id, call.body.allow)
    return ActionDecision(action_id=action_id, allow=call.body.allow)


ENDPOINTS = (
    Endpoint("GET", "/v1/actions", list_actions, "Calls that wait for the user's word",
             scope="read", answer=ActionList),
    Endpoint("POST", "/v1/actions/{action_id}", decide,
             "Allow a waiting call, which then runs exactly as shown, once; or refuse it",
             scope="chat", body=ActionAnswer, answer=ActionDecision, problems=(409,)),
)  # fmt: skip
