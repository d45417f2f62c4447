"""Candidates among a user's active memories: which read alike, which hold a query's terms."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from mira.store.database import Tx
from mira.store.spaces import Source


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
