"""What searches read of memories besides vectors and postings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from mira.store.database import Caller, Tx
from mira.store.spaces import Source

#: The user whom nobody is, whose memories everybody finds.
SHARED = UUID("00000000-0000-0000-0000-0000000000ff")


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """What ranking needs to know of a memory. `score`: its importance, calculated just now."""

    id: UUID
    doc: int
    score: float
    use_day_created: int
    superseded: bool


async def sharing_rare_terms(
    tx: Tx, user_id: UUID, terms: Sequence[str], length: int, *, limit: int = 10
) -> list[int]:
    """Documents of about this length that share the most of the six rarest of `terms`."""
    rows = await tx.fetch(
        "with rare as materialized (select term from term_counts "
        "  where user_id = $1 and source = $2 and term = any($3) order by documents, term limit 6) "
        "select p.doc from rare cross join lateral (select doc from postings "
        "  where user_id = $1 and source = $2 and term = rare.term and length between $4 and $5 "
        "  order by doc desc limit 500) p "
        "group by p.doc order by count(*) desc, p.doc desc limit $6",
        user_id, Source.MEMORIES, list(terms), int(length * 0.8), int(length * 1.25) + 1, limit,
    )  # fmt: skip
    return [row["doc"] for row in rows]


async def candidates(
    tx: Tx, user_id: UUID, docs: Sequence[int], now: datetime, use_days: int
) -> dict[int, Candidate]:
    """Those of these documents that are active memories, scored as of `now`, a day on which the
    user has `use_days` behind them: their use, age and dates as they are; of their entities what
    was counted last, since those can be many."""
    rows = await tx.fetch(
        "select m.id, m.doc, m.superseded_by is not null as superseded, s.use_day_created, "
        "  memory_score($4, s.use_day_created, s.use_day_accessed, s.access_count, "
        "    s.mention_count, (select count(*) from memory_links l join memories f "
        "      on f.id = l.from_id and f.status = 'active' where l.to_id = m.id), "
        "    s.shared_entities, m.happens_at, m.expires_at, $3) as score "
        "from memories m join memory_scores s on s.memory_id = m.id "
        "where m.user_id = $1 and m.doc = any($2) and m.status = 'active'",
        user_id, list(docs), now, use_days,
    )  # fmt: skip
    return {row["doc"]: Candidate(**dict(row)) for row in rows}


async def true_at(tx: Tx, user_id: UUID, at: datetime) -> list[int]:
    """The documents of active memories that were true at `at`."""
    rows = await tx.fetch(
        "select doc from memories where user_id = $1 and status = 'active' "
        "and valid_from <= $2 and (valid_to is null or valid_to > $2)",
        user_id, at,
    )  # fmt: skip
    return [row["doc"] for row in rows]


class About(msgspec.Struct, frozen=True, kw_only=True):
    """An entity and what is about it."""

    id: UUID
    #: How many memories it has, counted up to ten times `newest`.
    memories: int
    #: Of the newest of them the most important active ones.
    docs: list[int]
    #: Which of the names that were looked for it bears, or those that were merged into it.
    keys: tuple[str, ...] = ()


_ABOUT = (
    "e.id, (select count(*) from (select from memory_entities x where x.entity_id = e.id "
    "    limit $4 * 10) counted) as memories, "
    "  array(select m.doc from (select x.memory_id from memory_entities x "
    "      where x.entity_id = e.id order by x.memory_id desc limit $4) newest "
    "    join memories m on m.id = newest.memory_id and m.status = 'active' "
    "    join memory_scores s on s.memory_id = m.id "
    "    order by s.importance desc, m.doc desc limit $3) as docs"
)


async def about(
    tx: Tx, user_id: UUID, entity_ids: Sequence[UUID], *, newest: int, each: int
) -> list[About]:
    """For each entity how many memories it has, and of the `newest` of them the `each` most
    important active ones."""
    rows = await tx.fetch(
        f"select {_ABOUT} from entities e where e.user_id = $1 and e.id = any($2)",  # noqa: S608
        user_id, list(entity_ids), each, newest,
    )  # fmt: skip
    return [About(**dict(row)) for row in rows]


async def about_named(
    tx: Tx, user_id: UUID, keys: Sequence[str], *, most: int, newest: int, each: int
) -> list[About]:
    """As `about`, of the first `most` entities that bear one of these very names, whatever their
    type; of those that were merged into others, of these."""
    rows = await tx.fetch(
        "with recursive onward(key, since, at, next) as ("  # noqa: S608
        "  select key, created_at, id, merged_into from entities "
        "    where user_id = $1 and key = any($2) "
        "  union select o.key, o.since, e.id, e.merged_into "
        "    from onward o join entities e on e.id = o.next), "
        "named as (select at as id, array_agg(distinct key) as keys, min(since) as since "
        "  from onward where next is null group by 1 order by since, id limit $5) "
        f"select {_ABOUT}, keys from named join entities e using (id) order by since, id",
        user_id, list(keys), each, newest, most,
    )  # fmt: skip
    return [About(**dict(row)) for row in rows]


async def any_active(caller: Caller, user_id: UUID) -> bool:
    """Whether the user has a memory that can be found."""
    row = await caller.call("has_memories", user_id)
    there: bool = row[0]
    return there
