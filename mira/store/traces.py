"""Traces: what each search looked for, what it found, and what was shown and used of it.

Whole for a month; then what was asked and how the lanes went is dropped, ids and scores stay. No
trace holds the text of a memory or of a message.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from mira.errors import NotFound
from mira.store.database import Tx

#: How long a trace stays whole.
WHOLE = timedelta(days=30)


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """One search. `results` are the candidates, best first: each with `id` and `score`, and while
    the trace is whole with what each lane said and why it was kept or dropped."""

    id: UUID
    turn_id: UUID | None
    purpose: str
    at: datetime
    #: None once it is old.
    query: dict[str, Any] | None
    results: list[dict[str, Any]]
    surfaced: tuple[UUID, ...] = ()
    used: tuple[UUID, ...] = ()


_SELECT = (
    "select id, turn_id, purpose, at, query::text, results::text, surfaced, used "
    "from retrieval_traces where user_id = $1 "
)


async def write(tx: Tx, user_id: UUID, trace: Trace) -> None:
    """Keep a trace. Its transaction then need not be on disk when it returns: a crash of the
    machine may cost the traces of its last moment, and no search waits for the disk."""
    await tx.execute(
        "insert into retrieval_traces "
        "(id, user_id, turn_id, purpose, at, query, results, surfaced, used) "
        "select $1, $2, $3, $4, $5, $6::jsonb, $7::jsonb, $8, $9 "
        "from (select set_config('synchronous_commit', 'off', true)) as quick",
        trace.id, user_id, trace.turn_id, trace.purpose, trace.at,
        None if trace.query is None else msgspec.json.encode(trace.query).decode(),
        msgspec.json.encode(trace.results).decode(), list(trace.surfaced), list(trace.used),
    )  # fmt: skip


async def get(tx: Tx, user_id: UUID, trace_id: UUID) -> Trace:
    """Raises NotFound."""
    row = await tx.row(_SELECT + "and id = $2", user_id, trace_id)
    if row is None:
        raise NotFound("There is no such trace.")
    return _trace(row)


async def of_turn(tx: Tx, user_id: UUID, turn_id: UUID) -> list[Trace]:
    """The searches of a turn, in their order."""
    rows = await tx.fetch(_SELECT + "and turn_id = $2 order by at, id", user_id, turn_id)
    return [_trace(row) for row in rows]


async def note(
    tx: Tx, user_id: UUID, trace_id: UUID, *, surfaced: Sequence[UUID] | None = None,
    used: Sequence[UUID] | None = None,
) -> None:  # fmt: skip
    """Note what of a search was shown to the model, or what of that was used."""
    await tx.execute(
        "update retrieval_traces set surfaced = coalesce($3, surfaced), used = coalesce($4, used) "
        "where user_id = $1 and id = $2",
        user_id, trace_id, None if surfaced is None else list(surfaced),
        None if used is None else list(used),
    )  # fmt: skip


async def thin(tx: Tx, user_id: UUID, now: datetime) -> int:
    """Reduce traces of more than a month to ids and scores; returns how many."""
    return await tx.execute(
        "update retrieval_traces set query = null, results = coalesce((select jsonb_agg("
        "  jsonb_build_object('id', r -> 'id', 'score', r -> 'score') order by place) "
        "  from jsonb_array_elements(results) with ordinality as each(r, place)), '[]') "
        "where user_id = $1 and query is not null and at < $2",
        user_id, now - WHOLE,
    )  # fmt: skip


def _trace(row: object) -> Trace:
    fields = dict(row)  # type: ignore[call-overload]
    for name in ("query", "results"):
        fields[name] = msgspec.json.decode(fields[name]) if fields[name] else None
    for name in ("surfaced", "used"):
        fields[name] = tuple(fields[name])
    return Trace(**fields)
