"""Vectors of a user's documents: written, removed, and compared.

The statements name their table (one a dimension); values go as parameters. Vectors are expected
to have length 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import msgspec

from mira.store import signatures
from mira.store.database import Tx
from mira.store.signatures import Signs
from mira.store.spaces import DIMENSIONS, Source, Space, literal

Vector = Sequence[float]

#: So many documents of one user are compared one by one; of more, those whose signs differ least.
EXACT = 4_000
#: How many those are. With 800 of 100,000, they held 0.9975 of the 20 nearest; with 500, 0.985.
POOL = 800


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
    signed = [(signatures.number(doc, unit), v) for doc, unit, v in rows]
    await signatures.put(tx, user_id, source, space, signed)


async def remove(tx: Tx, user_id: UUID, source: Source, docs: Sequence[int]) -> None:
    """Remove the vectors of documents, in every space."""
    if not docs:
        return
    gone: set[tuple[int, int]] = set()
    for dimension in DIMENSIONS:
        rows = await tx.fetch(
            f"delete from vectors_{dimension} where user_id = $1 and source = $2 "  # noqa: S608
            "and model in (select id from embedding_models where dimension = $4) and doc = any($3) "
            "returning doc, unit",
            user_id, source, list(docs), dimension,
        )  # fmt: skip
        gone.update((row["doc"], row["unit"]) for row in rows)
    if gone:
        await signatures.clear(
            tx, user_id, source, [signatures.number(doc, unit) for doc, unit in sorted(gone)]
        )


def method(documents: int) -> str:
    """How the nearest of so many documents are found: exact, or by their signs first."""
    return "exact" if documents <= EXACT else "signs"


async def nearest(
    tx: Tx, user_id: UUID, source: Source, space: Space, vector: Vector, *, documents: int,
    limit: int, without: Sequence[int] = (), only: Sequence[int] | None = None,
    signs: Signs | None = None,
) -> list[Near]:  # fmt: skip
    """The documents most like `vector` (unit 0) of the `documents` that the user has, best first.

    Those of `without` are left out; with `only`, all others too. Exact up to EXACT documents, or
    with `only`; beyond, exact among the POOL documents that are the nearest by their signs, which
    are read unless they are given.
    """
    if documents > EXACT and only is None:
        signs = signs or await signatures.read(tx, user_id, source, space)
        only = signs.nearest(vector, limit=POOL + len(without))
    values: list[object] = [user_id, source, space.id, literal(vector), limit]
    wanted = ""
    for condition, docs in (("doc <> all", without or None), ("doc = any", only)):
        if docs is not None:
            values.append(list(docs))
            wanted += f"and {condition}(${len(values)}) "
    rows = await tx.fetch(
        # In a sub-query, so that the text is read once and not for every row.
        "select doc, 1 - (v <=> "  # noqa: S608
        f"(select $4::text::halfvec({space.dimension}))) as similarity "
        f"from {space.table} where user_id = $1 and source = $2 and model = $3 and unit = 0 "
        f"{wanted}order by 2 desc, doc desc limit $5",
        *values,
    )
    return [Near(row["doc"], row["similarity"]) for row in rows]


async def discard(tx: Tx, user_id: UUID, space: Space, *, limit: int) -> int:
    """Remove at most `limit` of the user's vectors in a space; return how many went."""
    await signatures.discard(tx, user_id, space)
    return await tx.execute(
        f"delete from {space.table} where ctid = any(array("  # noqa: S608
        f"select ctid from {space.table} where user_id = $1 and source in (1, 2) and model = $2 "
        "limit $3))",
        user_id, space.id, limit,
    )  # fmt: skip


async def memories_without(
    tx: Tx, user_id: UUID, space: Space, *, limit: int | None = None,
    among: Sequence[tuple[int, str]] | None = None,
) -> list[tuple[int, str]]:  # fmt: skip
    """(doc, text) of active memories without a vector in a space, by their numbers; `among`
    restricts it to certain ones."""
    rows = await tx.fetch(
        "select m.doc, m.text from memories m where m.user_id = $1 and m.status = 'active' "  # noqa: S608
        "and ($4::integer[] is null or m.doc = any($4)) "
        f"and not exists (select from {space.table} v where v.user_id = $1 and v.source = 1 "
        "  and v.model = $2 and v.doc = m.doc and v.unit = 0) order by m.doc limit $3",
        user_id, space.id, limit, None if among is None else [doc for doc, _ in among],
    )  # fmt: skip
    return [(row["doc"], row["text"]) for row in rows]


async def passages_without(
    tx: Tx, user_id: UUID, space: Space, *, limit: int | None = None,
    among: Sequence[int] | None = None,
) -> list[int]:  # fmt: skip
    """Passages without a vector in a space, by their numbers; `among` as above."""
    rows = await tx.fetch(
        "select p.doc from passages p where p.user_id = $1 "  # noqa: S608
        "and ($4::integer[] is null or p.doc = any($4)) "
        f"and not exists (select from {space.table} v where v.user_id = $1 and v.source = 2 "
        "  and v.model = $2 and v.doc = p.doc and v.unit = 0) order by p.doc limit $3",
        user_id, space.id, limit, None if among is None else list(among),
    )  # fmt: skip
    return [row["doc"] for row in rows]
