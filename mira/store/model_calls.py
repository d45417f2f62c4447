"""The books: physical calls of providers that are written down beside turns, or without one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from mira.store.database import Tx
from mira.store.turns import NewCall


async def book(
    tx: Tx, user_id: UUID, calls: Sequence[NewCall], at: datetime, *, turn_id: UUID | None = None
) -> None:
    """Write down calls, failed ones too, of a turn if they were made for one; a call that is there
    already stays as it is."""
    await tx.many(
        "insert into model_calls (id, user_id, turn_id, purpose, provider, model, input_tokens, "
        "output_tokens, cache_read_tokens, cache_write_tokens, reported, first_event_ms, total_ms, "
        "error, at) values ($1, $2, $15, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) "
        "on conflict (id) do nothing",
        [
            (
                call.id, user_id, call.purpose, call.provider, call.model, call.input_tokens,
                call.output_tokens, call.cache_read_tokens, call.cache_write_tokens,
                call.reported, call.first_event_ms, call.total_ms, call.error, at, turn_id,
            )
            for call in calls
        ],
    )  # fmt: skip
