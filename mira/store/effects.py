"""The journal of calls that change the world outside, and the calls that wait for the user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from uuid import UUID

import asyncpg
import msgspec

from mira.errors import Conflict, NotFound, StaleEpoch, ValidationFailed
from mira.messages.tool import ToolCall, ToolOutcome
from mira.messages.wire import PendingAction
from mira.store.database import Tx
from mira.store.turns import Fence

#: How long a pending action waits for the user's word.
ACTION_LIFETIME = timedelta(hours=24)


@contextmanager
def _storable() -> Iterator[None]:
    """JSON is more than the database can hold: numbers beyond all measure, depth without end."""
    try:
        yield
    except (asyncpg.DataError, asyncpg.ProgramLimitExceededError):
        raise ValidationFailed("These arguments cannot be stored.") from None


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    call_id: str
    tool: str
    arguments: str
    state: str
    result: str | None


class Action(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    turn_id: UUID
    call_id: str
    tool: str
    arguments: str
    state: str
    expires_at: datetime
    result: str | None
    follow_up: UUID | None


async def start(tx: Tx, user_id: UUID, fence: Fence, call: ToolCall, at: datetime) -> None:
    """Write down that the call is about to be made.

    Raises StaleEpoch; Conflict if it was made; ValidationFailed if it cannot be written down.
    """
    if not await tx.value("select may_write($1, $2, $3)", user_id, fence.epoch, fence.generation):
        raise StaleEpoch("Another activation has taken over this conversation.")
    with _storable():
        new = await tx.execute(
            "insert into effects (user_id, turn_id, call_id, tool, arguments, state, started_at) "
            "values ($1, $2, $3, $4, $5::jsonb, 'started', $6) on conflict do nothing",
            user_id, call.turn_id, call.call_id, call.name, call.arguments, at,
        )  # fmt: skip
    if not new:
        raise Conflict("This call was made before.")


async def finish(tx: Tx, user_id: UUID, call: ToolCall, outcome: ToolOutcome, at: datetime) -> None:
    """Write down what came of a started call."""
    await tx.execute(
        "update effects set state = $4, result = $5, finished_at = $6 "
        "where user_id = $1 and turn_id = $2 and call_id = $3 and state = 'started'",
        user_id, call.turn_id, call.call_id, "failed" if outcome.is_error else "done",
        outcome.text, at,
    )  # fmt: skip


async def of_turn(tx: Tx, user_id: UUID, turn_id: UUID) -> list[Effect]:
    """The turn's journal, in the order in which the calls began."""
    rows = await tx.fetch(
        "select call_id, tool, arguments::text, state, result from effects "
        "where user_id = $1 and turn_id = $2 order by started_at, call_id",
        user_id, turn_id,
    )  # fmt: skip
    return [Effect(**dict(row)) for row in rows]


async def has_asked(tx: Tx, user_id: UUID, turn_id: UUID) -> bool:
    """Whether the turn has asked the user for a word, given or not."""
    asked: bool = await tx.value(
        "select exists (select from pending_actions where user_id = $1 and turn_id = $2)",
        user_id, turn_id,
    )  # fmt: skip
    return asked


async def propose(
    tx: Tx, user_id: UUID, action_id: UUID, call: ToolCall, at: datetime
) -> PendingAction:
    """Store a call that waits for the user's word.

    What an earlier attempt of the turn asked for under its id is over. Raises Conflict if that is
    not so, ValidationFailed if the call cannot be written down.
    """
    expires = at + ACTION_LIFETIME
    with _storable():
        new = await tx.execute(
            "insert into pending_actions as a "
            "(id, user_id, turn_id, call_id, tool, arguments, created_at, expires_at) "
            "values ($1, $2, $3, $4, $5, $6::jsonb, $7, $8) on conflict (turn_id, call_id) "
            "do update set id = excluded.id, tool = excluded.tool, state = 'pending', "
            "arguments = excluded.arguments, created_at = excluded.created_at, "
            "expires_at = excluded.expires_at where a.state = 'expired'",
            action_id, user_id, call.turn_id, call.call_id, call.name, call.arguments, at, expires,
        )  # fmt: skip
    if not new:
        raise Conflict("The user was asked about this call before.")
    return PendingAction(
        action_id=action_id, tool=call.name, call=call.arguments, expires=expires.isoformat()
    )


async def confirmations(tx: Tx, user_id: UUID, now: datetime) -> list[PendingAction]:
    """Calls that wait for the user's word, oldest first."""
    # Bounded by when they were made, too: that is where the index leads.
    rows = await tx.fetch(
        "select id, tool, arguments::text, expires_at from pending_actions "
        "where user_id = $1 and state = 'pending' and expires_at > $2 and created_at > $3 "
        "order by created_at, id",
        user_id, now, now - ACTION_LIFETIME,
    )  # fmt: skip
    return [
        PendingAction(
            action_id=row["id"],
            tool=row["tool"],
            call=row["arguments"],
            expires=row["expires_at"].isoformat(),
        )
        for row in rows
    ]


async def decide(tx: Tx, user_id: UUID, action_id: UUID, allow: bool, at: datetime) -> bool:
    """Keep the user's word. False if the same was said before; raises NotFound, Conflict."""
    new = await tx.execute(
        "update pending_actions set state = $3, decided_at = $4 "
        "where user_id = $1 and id = $2 and state = 'pending' and expires_at > $4",
        user_id, action_id, "allowed" if allow else "refused", at,
    )  # fmt: skip
    if new:
        return True
    action = await get(tx, user_id, action_id)
    said = {"allowed": True, "executed": True, "refused": False}.get(action.state)
    if said is None:
        raise Conflict("This action has expired.")
    if said is not allow:
        raise Conflict(f"This action was already {action.state}.")
    return False


_ACTION = (
    "select id, turn_id, call_id, tool, arguments::text, state, expires_at, result, follow_up "
    "from pending_actions where user_id = $1 and "
)

_NAMED_BY_TURN = (
    "id = (select substr(t.request_id, 8)::uuid from turns t "
    "where t.user_id = $1 and t.id = $2 and t.origin = 'action')"
)


async def get(tx: Tx, user_id: UUID, action_id: UUID) -> Action:
    """Raises NotFound."""
    row = await tx.row(_ACTION + "id = $2", user_id, action_id)
    if row is None:
        raise NotFound("There is no such action.")
    return Action(**dict(row))


async def behind(tx: Tx, user_id: UUID, turn_id: UUID) -> Action:
    """The action whose settling began this turn, which names it. Raises NotFound."""
    row = await tx.row(_ACTION + _NAMED_BY_TURN, user_id, turn_id)
    if row is None:
        raise NotFound("There is no such action.")
    return Action(**dict(row))


async def begin_follow_up(
    tx: Tx,
    user_id: UUID,
    fence: Fence,
    *,
    turn_id: UUID,
    action_id: UUID,
    state: str,
    result: str,
    at: datetime,
) -> bool:
    """Begin the turn that answers a decided action; False if it had begun. Raises StaleEpoch."""
    begun: bool | None = await tx.value(
        "select begin_follow_up($1, $2, $3, $4, $5, $6, $7, $8)",
        user_id, fence.epoch, fence.generation, turn_id, action_id, state, result, at,
    )  # fmt: skip
    if begun is None:
        raise StaleEpoch("Another activation has taken over this conversation.")
    return begun
