"""The calls of models that a turn has made, as they stand in the books."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from mira.store.database import Tx
from mira.store.turns import NewCall


class TurnCall(NewCall, frozen=True, kw_only=True):
    """One physical call. Tokens are estimates unless the provider has `reported` them."""

    at: datetime


async def of_turn(tx: Tx, user_id: UUID, turn_id: UUID) -> list[TurnCall]:
    """The calls of a turn, in their order."""
    rows = await tx.fetch(
        "select id, purpose, provider, model, input_tokens, output_tokens, cache_read_tokens, "
        "cache_write_tokens, reported, first_event_ms, total_ms, error, at "
        "from model_calls where user_id = $1 and turn_id = $2 order by at, id",
        user_id, turn_id,
    )  # fmt: skip
    return [TurnCall(**dict(row)) for row in rows]
