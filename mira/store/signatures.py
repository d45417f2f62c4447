"""Signatures: the signs of a vector's numbers, one bit each, many in a row.

To compare a vector with a hundred thousand others, Postgres would have to read all of them. Their
signs are a sixteenth of that, come as one value, and are compared here in a few milliseconds: what
differs in the fewest bits is worth an exact look. A document without a signature has zeros, which
are near to nothing.

Each unit of a document (see `vectors`) has a signature. They are numbered unit by unit, so that
units which few documents have take little room.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import numpy as np

from mira.store.database import Tx
from mira.store.spaces import Source, Space

#: Bytes of a row: small enough to lie in the table itself.
_ROW = 1536


#: Documents that a unit has numbers for.
_DOCUMENTS = 1 << 25


def number(doc: int, unit: int = 0) -> int:
    """The number of a document's unit among the signatures."""
    return unit * _DOCUMENTS + doc


async def put(
    tx: Tx, user_id: UUID, source: Source, space: Space,
    rows: Sequence[tuple[int, Sequence[float] | None]],
) -> None:  # fmt: skip
    """Write signatures by their numbers; None clears one. Writers take turns (the caller holds
    that user's lock)."""
    size, many = _size(space), _many(space)
    wanted = sorted({doc // many for doc, _ in rows})
    found = await tx.fetch(
        "select block, bits from signatures "
        "where user_id = $1 and source = $2 and model = $3 and block = any($4)",
        user_id, source, space.id, wanted,
    )  # fmt: skip
    blocks = {row["block"]: bytearray(row["bits"]) for row in found}
    for doc, vector in rows:
        block, place = divmod(doc, many)
        bits = blocks.setdefault(block, bytearray(size * many))
        bits[place * size : (place + 1) * size] = (
            bytes(size) if vector is None else signature(vector)
        )
    await tx.execute(
        "insert into signatures (user_id, source, model, block, bits) "
        "select $1, $2, $3, * from unnest($4::integer[], $5::bytea[]) "
        "on conflict (user_id, source, model, block) do update set bits = excluded.bits",
        user_id, source, space.id, wanted, [bytes(blocks[block]) for block in wanted],
    )  # fmt: skip


async def clear(tx: Tx, user_id: UUID, source: Source, docs: Sequence[int]) -> None:
    """Clear signatures, by their numbers, in every space that has them."""
    rows = await tx.fetch(
        "select distinct m.id, m.name, m.dimension from signatures s "
        "join embedding_models m on m.id = s.model where s.user_id = $1 and s.source = $2",
        user_id, source,
    )  # fmt: skip
    for row in rows:
        space = Space(id=row["id"], model=row["name"], dimension=row["dimension"])
        await put(tx, user_id, source, space, [(doc, None) for doc in docs])


async def discard(tx: Tx, user_id: UUID, space: Space) -> None:
    """Remove all of a space."""
    await tx.execute("delete from signatures where user_id = $1 and model = $2", user_id, space.id)


async def nearest(
    tx: Tx, user_id: UUID, source: Source, space: Space, vector: Sequence[float], *, limit: int
) -> list[int]:
    """The documents of the `limit` signatures that differ least from `vector`, rising, each once.
    Some of them may not exist any more."""
    # Rows as they lie: to put them in order, or together, would cost more than to read them.
    rows = await tx.fetch(
        "select block, bits from signatures where user_id = $1 and source = $2 and model = $3",
        user_id, source, space.id,
    )  # fmt: skip
    if not rows:
        return []
    many = _many(space)
    blocks = np.array([row["block"] for row in rows])
    docs = (blocks[:, None] * many + np.arange(many)).ravel()
    words = np.frombuffer(b"".join([row["bits"] for row in rows]), np.uint64).reshape(len(docs), -1)
    asked = np.frombuffer(signature(vector), np.uint64)
    # Word by word: a sum over so short an axis costs ten times as much.
    differing = np.zeros(len(docs), np.uint16)
    for at in range(words.shape[1]):
        differing += np.bitwise_count(words[:, at] ^ asked[at])
    if len(docs) > limit:
        docs = docs[np.argpartition(differing, limit)[:limit]]
    nearest: list[int] = np.unique(docs % _DOCUMENTS).tolist()
    return nearest


def signature(vector: Sequence[float]) -> bytes:
    """The signs of a vector, eight in a byte."""
    return np.packbits(np.asarray(vector) > 0).tobytes()


def _size(space: Space) -> int:
    return space.dimension // 8


def _many(space: Space) -> int:
    """Documents whose signatures lie in one row."""
    return _ROW // _size(space)
