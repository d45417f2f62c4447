"""The history: every message of the one conversation, in the order (turn, position)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from mira.messages.content import RESULT_SHOWN, Block, Role, decode_blocks
from mira.store.database import Tx


class HistoryMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A stored message. `state` is complete, cancelled or interrupted; `request_id` is what its
    turn was asked under."""

    id: UUID
    turn_id: UUID
    request_id: str
    turn_seq: int
    position: int
    role: Role
    blocks: tuple[Block, ...]
    state: str
    created_at: datetime


class Within(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the history: a segment, a stretch of time (`since` included, `until` not), both,
    or, with neither, all of it."""

    segment_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None


_ALL = Within()

_COLUMNS = (
    "select m.id, m.turn_id, m.turn_seq, m.position, m.role, m.content, m.state, m.created_at"
)
# The user's words (attempt 0) and the latest attempt of each turn. A sub-query rather than a join:
# whatever the planner knows of the tables, it reads down the index and stops at the limit.
_SELECT = f"""
{_COLUMNS}, (select t.request_id from turns t where t.id = m.turn_id) as request_id
from messages m
where m.user_id = $1
  and (m.attempt = 0 or m.attempt = (select t.attempt from turns t where t.id = m.turn_id))
"""  # noqa: S608
# The newest turns of a segment, what each of them takes, and those that fit. The oldest of them is
# said once more, so that the messages are read down the index from there and no further back.
_RECENT = f"""
with newest as materialized (
  select id, seq, attempt, request_id from turns
  where user_id = $1 and segment_id = $2 and seq > $5 and attempt > 0
    and state in ('complete', 'cancelled', 'interrupted', 'failed')
  order by seq desc limit $4),
shown as materialized (
  {_COLUMNS}, t.request_id,
    sum(length(m.content::text) - case when m.role = 'tool' then (
      select coalesce(sum(greatest(length(b ->> 'text') - $6, 0)), 0)
      from jsonb_array_elements(m.content) b) else 0 end) over (order by m.turn_seq desc) as total,
    m.turn_seq = (select max(seq) from newest) as newest
  from newest t join messages m on m.user_id = $1 and m.turn_seq = t.seq
    and m.turn_seq >= (select min(seq) from newest)
    and (m.attempt = 0 or m.attempt = t.attempt))
select * from shown where total <= $3 or newest order by turn_seq, position
"""  # noqa: S608


async def page(
    tx: Tx, user_id: UUID, *, before: tuple[int, int] | None, limit: int, within: Within = _ALL
) -> list[HistoryMessage]:
    """At most `limit` messages before (turn_seq, position), newest first."""
    turn_seq, position = before or (2**63 - 1, 0)
    sql = _SELECT + "and (m.turn_seq, m.position) < ($2, $3) "
    values: list[object] = [user_id, turn_seq, position, limit]
    for value, condition in (
        (within.since, "m.created_at >= "),
        (within.until, "m.created_at < "),
        (within.segment_id, "m.turn_id in (select id from turns where segment_id = "),
    ):
        if value is not None:
            values.append(value)
            sql += f"and {condition}${len(values)}{')' * condition.count('(')} "
    sql += "order by m.turn_seq desc, m.attempt desc, m.position desc limit $4"
    return [_message(row) for row in await tx.fetch(sql, *values)]


async def of_segment(
    tx: Tx, user_id: UUID, segment_id: UUID, *, characters: int, turns: int, after_seq: int = 0
) -> list[HistoryMessage]:
    """The newest whole turns of a segment with seq > `after_seq`, oldest message first.

    At most `turns` of them, and of those so many as fit `characters` of stored content (of a long
    tool result what prompts show of it is counted); the newest one always. Turns that have not
    ended, or never began, are left out. Reads no further back than `turns`.
    """
    rows = await tx.fetch(_RECENT, user_id, segment_id, characters, turns, after_seq, RESULT_SHOWN)
    return [_message(row) for row in rows]


async def of_turn(tx: Tx, user_id: UUID, turn_id: UUID) -> list[HistoryMessage]:
    """One turn's messages in order."""
    rows = await tx.fetch(_SELECT + "and m.turn_id = $2 order by m.position", user_id, turn_id)
    return [_message(row) for row in rows]


async def of_ids(tx: Tx, user_id: UUID, ids: Sequence[UUID]) -> list[HistoryMessage]:
    """Those of these messages that are there, in the order in which they were said."""
    rows = await tx.fetch(
        _SELECT + "and m.id = any($2) order by m.turn_seq, m.position", user_id, list(ids)
    )
    return [_message(row) for row in rows]


def _message(row: object) -> HistoryMessage:
    fields = dict(row)  # type: ignore[call-overload]
    fields["blocks"] = decode_blocks(fields.pop("content"))
    fields["role"] = Role(fields["role"])
    fields.pop("total", None)
    fields.pop("newest", None)
    return HistoryMessage(**fields)
