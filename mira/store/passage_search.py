"""What a search reads of the history besides postings: the nearest vectors, and the candidates.

Numbers come back in columns, not in rows: they go into arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec
import numpy as np
from numpy.typing import NDArray

from mira.store import signatures
from mira.store.database import Tx
from mira.store.signatures import Signs
from mira.store.spaces import Source, Space, literal

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: So many documents of one user are compared one by one (each has two vectors or more).
EXACT = 2000
#: Beyond, how many signatures are worth an exact look.
SIGNED = 1000
#: A vector in Postgres' binary form: dimension, a spare word, then its numbers.
_HEADER = 4


class Near(msgspec.Struct, frozen=True, kw_only=True):
    """The documents nearest to a vector: by a part of theirs, and together with their neighbours;
    nearest first, each once."""

    parts: list[int]
    windows: list[int]


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """Passages as ranking knows them, in columns alike, by rising numbers. `segment` numbers the
    segments among them; `day` is the local date as an ordinal (1 is 1 January 1)."""

    doc: Ints
    message_id: Sequence[UUID]
    segment_id: Sequence[UUID | None]
    segment: Ints
    turn_seq: Sequence[int]
    by_user: Bools
    said_at: Sequence[datetime]
    length: Ints
    asks: Bools
    timed: Bools
    counted: Bools
    day: Ints


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """Vectors of documents, in the order (doc, unit); unit 0 is the one with neighbours."""

    docs: Ints
    units: Ints
    vectors: NDArray[np.float32]


async def nearest(
    tx: Tx, user_id: UUID, space: Space, vector: Sequence[float], *, documents: int, limit: int,
    signs: Signs | None = None,
) -> Near:  # fmt: skip
    """The `limit` nearest documents of each kind, of the `documents` that the user has.

    Exact as long as there are few enough; beyond, exact among those that are near by their signs,
    which are read unless they are given.
    """
    wanted = ""
    values: list[object] = [user_id, Source.PASSAGES, space.id, literal(vector), limit]
    if method(documents) == "signs":
        signs = signs or await signatures.read(tx, user_id, Source.PASSAGES, space)
        values.append(signs.nearest(vector, limit=SIGNED))
        wanted = "and doc = any($6) "
    rows = await tx.fetch(
        # The text of the vector is in a sub-query, so that it is read once and not for every row.
        "with scan as materialized (select doc, unit, "  # noqa: S608
        f"  v <=> (select $4::text::halfvec({space.dimension})) as far from {space.table} "
        f"  where user_id = $1 and source = $2 and model = $3 {wanted}) "
        "(select doc, true as around from scan where unit = 0 order by far, doc desc limit $5) "
        "union all "
        # A message of many parts must not take all places.
        "(select doc, false from (select doc, min(far) as far from ("
        "    select doc, far from scan where unit > 0 order by far limit $5 * 4) parts "
        "  group by doc) docs order by far, doc desc limit $5)",
        *values,
    )
    return Near(
        parts=[row["doc"] for row in rows if not row["around"]],
        windows=[row["doc"] for row in rows if row["around"]],
    )


def method(documents: int) -> str:
    """How the nearest of so many documents are found: exact, or by their signs first."""
    return "exact" if documents <= EXACT else "signs"


async def rows(
    tx: Tx, user_id: UUID, docs: Sequence[int], timezone: str, as_of: datetime | None = None
) -> Rows:
    """Those of these documents that there are; with `as_of`, that were said by then."""
    found = await tx.row(
        "select array_agg(doc), array_agg(message_id), array_agg(segment_id), array_agg(segment), "
        "  array_agg(turn_seq), array_agg(role = 'user'), array_agg(said_at), array_agg(length), "
        "  array_agg(asks), array_agg(timed), array_agg(counted), "
        "  array_agg((said_at at time zone $3)::date - date '0001-01-01' + 1) "
        "from (select *, dense_rank() over (order by segment_id) as segment from passages "
        "  where user_id = $1 and doc = any($2) "
        "  and ($4::timestamptz is null or said_at <= $4) order by doc) as those",
        user_id, list(docs), timezone, as_of,
    )  # fmt: skip
    assert found is not None
    doc, message, segment_id, segment, turn, by_user, said, length, asks, timed, counted, day = (
        column or () for column in found
    )
    return Rows(
        doc=np.array(doc, np.int64), message_id=message, segment_id=segment_id,
        segment=np.array(segment, np.int64), turn_seq=turn,
        by_user=np.array(by_user, bool), said_at=said, length=np.array(length, np.int64),
        asks=np.array(asks, bool), timed=np.array(timed, bool), counted=np.array(counted, bool),
        day=np.array(day, np.int64),
    )  # fmt: skip


async def stored(tx: Tx, user_id: UUID, space: Space, docs: Sequence[int]) -> Stored:
    """The vectors of these documents."""
    row = await tx.row(
        "select array_agg(doc order by doc, unit) as docs, "  # noqa: S608
        "array_agg(unit order by doc, unit) as units, "
        "string_agg(halfvec_send(v), ''::bytea order by doc, unit) as vectors "
        f"from {space.table} where user_id = $1 and source = $2 and model = $3 and doc = any($4)",
        user_id, Source.PASSAGES, space.id, list(docs),
    )  # fmt: skip
    if row is None or row["docs"] is None:
        nothing = np.zeros(0, np.int64)
        return Stored(docs=nothing, units=nothing, vectors=np.zeros((0, space.dimension), "f4"))
    halves = np.frombuffer(row["vectors"], dtype=">f2").reshape(len(row["docs"]), -1)
    return Stored(
        docs=np.asarray(row["docs"], np.int64),
        units=np.asarray(row["units"], np.int64),
        vectors=halves[:, _HEADER // 2 :].astype(np.float32),
    )


async def docs_of(tx: Tx, user_id: UUID, message_ids: Sequence[UUID]) -> list[int]:
    """The numbers of those of these messages that are indexed."""
    if not message_ids:
        return []
    found = await tx.fetch(
        "select doc from passages where user_id = $1 and message_id = any($2)",
        user_id, list(message_ids),
    )  # fmt: skip
    return [row["doc"] for row in found]
