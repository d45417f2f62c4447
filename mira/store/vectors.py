"""Vectors of a user's documents: written, removed, and compared exactly.

The statements name their table (one a dimension); values go as parameters. Vectors are expected
to have length 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import msgspec

from mira.store.database import Tx
from mira.store.spaces import DIMENSIONS, Source, Space, literal

Vector = Sequence[float]


class Near(msgspec.Struct, frozen=True):
    """A document and its cosine to what was asked."""

    doc: int
    similarity: float


async def put(
    tx: Tx, user_id: UUID, source: Source, space: Space, rows: Sequence[tuple[int, int, Vector]]
) -> None:
    """Write vectors as (doc, unit, vector); one that is there already is replaced."""
    if not rows:
        return
    await tx.execute(
        f"insert into {space.table} (user_id, source, model, doc, unit, v) "  # noqa: S608
        "select $1, $2, $3, doc, unit, v::halfvec "
        "from unnest($4::integer[], $5::smallint[], $6::text[]) as row(doc, unit, v) "
        "on conflict (user_id, source, model, doc, unit) do update set v = excluded.v",
        user_id, source, space.id,
        [doc for doc, _, _ in rows], [unit for _, unit, _ in rows],
        [literal(v) for _, _, v in rows],
    )  # fmt: skip


async def remove(tx: Tx, user_id: UUID, source: Source, docs: Sequence[int]) -> None:
    """Remove the vectors of documents, in every space."""
    if not docs:
        return
    for dimension in DIMENSIONS:
        await tx.execute(
            f"delete from vectors_{dimension} where user_id = $1 and source = $2 "  # noqa: S608
            "and model in (select id from embedding_models where dimension = $4) and doc = any($3)",
            user_id, source, list(docs), dimension,
        )  # fmt: skip


async def nearest(
    tx: Tx, user_id: UUID, source: Source, space: Space, vector: Vector, *, limit: int,
    without: Sequence[int] = (), only: Sequence[int] | None = None,
) -> list[Near]:  # fmt: skip
    """The documents most like `vector` (unit 0), by an exact scan of this user's; best first.

    Those of `without` are left out; with `only`, all others too.
    """
    values: list[object] = [user_id, source, space.id, literal(vector), limit]
    wanted = ""
    for condition, docs in (("doc <> all", without or None), ("doc = any", only)):
        if docs is not None:
            values.append(list(docs))
            wanted += f"and {condition}(${len(values)}) "
    rows = await tx.fetch(
        f"select doc, 1 - (v <=> $4::text::halfvec({space.dimension})) as similarity "  # noqa: S608
        f"from {space.table} where user_id = $1 and source = $2 and model = $3 and unit = 0 "
        f"{wanted}order by 2 desc, doc desc limit $5",
        *values,
    )
    return [Near(row["doc"], row["similarity"]) for row in rows]
