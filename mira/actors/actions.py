"""Pending actions: the user has decided, and the stored call is made once, or refused."""

from __future__ import annotations

from uuid import UUID

from mira.actors.parts import Parts, Stage
from mira.actors.runtime.actor import Context
from mira.actors.tool_round import attempt, called, written_down
from mira.actors.transcript import UNKNOWN
from mira.errors import Conflict
from mira.messages.tool import ToolCall
from mira.messages.turn import TakeTurns
from mira.store import effects
from mira.store.effects import Action
from mira.store.turns import WAKE_LANE, Fence

REFUSED = "The user refused; it was not done."


async def settle_action(
    parts: Parts, user_id: UUID, fence: Fence, ctx: Context, action_id: UUID
) -> None:
    """Make the stored call exactly as it was shown, if it was allowed, and begin the turn that
    answers it. Idempotent: the call is journalled, and the turn begins with the action's result."""
    async with parts.database.user(user_id) as tx:
        action = await effects.get(tx, user_id, action_id)
        if action.follow_up is not None or action.state not in ("allowed", "refused"):
            await ctx.done(tx)
            return
    if action.state == "allowed":
        state, result = "executed", await _execute(parts, user_id, fence, ctx, action)
    else:
        state, result = "refused", REFUSED
    now = parts.clock.now()
    async with parts.database.user(user_id) as tx:
        begun = await effects.begin_follow_up(
            tx, user_id, fence, turn_id=parts.ids.new(), action_id=action_id, state=state,
            result=result, at=now,
        )  # fmt: skip
        if begun:
            await ctx.tell_durable(
                tx, ctx.address, TakeTurns(at=now), lane=WAKE_LANE, key=WAKE_LANE
            )
        await ctx.done(tx)


async def _execute(parts: Parts, user_id: UUID, fence: Fence, ctx: Context, action: Action) -> str:
    call = ToolCall(
        turn_id=action.turn_id, call_id=action.call_id, name=action.tool, arguments=action.arguments
    )
    try:
        async with parts.database.user(user_id) as tx:
            await effects.start(tx, user_id, fence, call, parts.clock.now())
    except Conflict:
        # An activation that died began it: what came of it stands in the journal, or nowhere.
        async with parts.database.user(user_id) as tx:
            journal = await effects.of_turn(tx, user_id, action.turn_id)
        known = {effect.call_id: effect.result for effect in journal}
        return known.get(action.call_id) or UNKNOWN
    parts.reached(Stage.EFFECT_STARTED, action.turn_id)
    run = await parts.tools.open(user_id, action.turn_id)
    outcome = await attempt(run, call)
    await written_down(parts, user_id, call, outcome)
    parts.reached(Stage.EFFECT_DONE, action.turn_id)
    await ctx.publish(called(user_id, call, outcome))
    return outcome.text
