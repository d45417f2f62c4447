"""How answers came about: one account for each attempt of a turn, written with its commit."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from mira.store.database import Tx
from mira.store.turn_account import TurnAccount

#: How long the Subcortex's own words are kept.
WHOLE = timedelta(days=30)


async def newest(tx: Tx, user_id: UUID, turn_id: UUID) -> TurnAccount | None:
    """The account of a turn's last attempt that has one."""
    raw = await tx.value(
        "select trace::text from turn_traces where user_id = $1 and turn_id = $2 "
        "order by attempt desc limit 1",
        user_id, turn_id,
    )  # fmt: skip
    return None if raw is None else msgspec.json.decode(raw, type=TurnAccount)


async def thin(tx: Tx, user_id: UUID, now: datetime) -> int:
    """Take the words of what the Subcortex looked for out of accounts of more than a month."""
    return await tx.execute(
        "update turn_traces set trace = trace || jsonb_build_object('subcortex', "
        "  (trace -> 'subcortex') || '{\"phrases\": [], \"entities\": [], \"answer\": \"\"}') "
        "where user_id = $1 and at < $2 and jsonb_typeof(trace -> 'subcortex') = 'object' "
        "and trace #> '{subcortex,answer}' <> '\"\"'",
        user_id, now - WHOLE,
    )  # fmt: skip
