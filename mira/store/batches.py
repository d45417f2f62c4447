"""Batches of extractions: meant, handed over, ended or gone.

The row is there before the provider is asked, and `submitted_at` is set before each attempt: so
after a crash it is known whether there may be a batch that nobody has heard of.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from mira.errors import NotFound
from mira.store.database import Tx

State = Literal["intent", "submitted", "ended", "gone"]


class BatchRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A batch as it stands. In `intent` with a `submitted_at` it may have been handed over."""

    id: UUID
    provider: str
    provider_id: str | None
    state: State
    created_at: datetime
    submitted_at: datetime | None
    last_error: str | None

    @property
    def open(self) -> bool:
        return self.state in ("intent", "submitted")


async def intend(tx: Tx, user_id: UUID, batch_id: UUID, provider: str, now: datetime) -> None:
    """Write down that a batch is to be handed over."""
    await tx.execute(
        "insert into batches (id, user_id, provider, state, created_at) "
        "values ($2, $1, $3, 'intent', $4)",
        user_id, batch_id, provider, now,
    )  # fmt: skip


async def get(tx: Tx, user_id: UUID, batch_id: UUID) -> BatchRecord:
    """Raises NotFound."""
    row = await tx.row(
        "select id, provider, provider_id, state, created_at, submitted_at, last_error "
        "from batches where user_id = $1 and id = $2",
        user_id, batch_id,
    )  # fmt: skip
    if row is None:
        raise NotFound("There is no such batch.")
    return BatchRecord(**dict(row))


async def submitting(tx: Tx, user_id: UUID, batch_id: UUID, now: datetime | None) -> None:
    """It is being handed over now; with None, it certainly was not."""
    await tx.execute(
        "update batches set submitted_at = $3 where user_id = $1 and id = $2 and state = 'intent'",
        user_id, batch_id, now,
    )  # fmt: skip


async def submitted(tx: Tx, user_id: UUID, batch_id: UUID, provider_id: str) -> None:
    """The provider has it, under this name."""
    await tx.execute(
        "update batches set state = 'submitted', provider_id = $3 "
        "where user_id = $1 and id = $2 and state = 'intent'",
        user_id, batch_id, provider_id,
    )  # fmt: skip


async def close(
    tx: Tx, user_id: UUID, batch_id: UUID, state: Literal["ended", "gone"], now: datetime,
    error: str | None = None,
) -> None:  # fmt: skip
    """Nothing more is expected of it."""
    await tx.execute(
        "update batches set state = $3, ended_at = $4, last_error = $5 "
        "where user_id = $1 and id = $2 and state in ('intent', 'submitted')",
        user_id, batch_id, state, now, error,
    )  # fmt: skip


async def known_to_us(tx: Tx, user_id: UUID) -> set[str]:
    """The provider's names of all batches of this user."""
    rows = await tx.fetch(
        "select provider_id from batches where user_id = $1 and provider_id is not null", user_id
    )
    return {row["provider_id"] for row in rows}


async def open_ones(tx: Tx, user_id: UUID) -> list[UUID]:
    """Batches of which something is still expected."""
    rows = await tx.fetch(
        "select id from batches where user_id = $1 and state in ('intent', 'submitted') "
        "order by created_at, id",
        user_id,
    )
    return [row["id"] for row in rows]
