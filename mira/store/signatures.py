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
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from mira.store.database import Tx
from mira.store.spaces import Source, Space

#: Bytes of a row: small enough to lie in the table itself.
_ROW = 1536
#: How many times as many signatures are looked at twice.
WIDER = 4

#: The bits of each byte.
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32)

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


class Signs:
    """All signatures of one user's documents in one space, as they were read."""

    def __init__(self, numbers: NDArray[np.int64], words: NDArray[np.uint64]) -> None:
        """`words`: the signatures, one in a row, in words of 64 bits."""
        self._numbers = numbers
        self._words = words

    def nearest(self, vector: Sequence[float], *, limit: int) -> list[int]:
        """The documents of the `limit` signatures nearest to `vector`, rising, each once. Some of
        them may not exist any more.

        WIDER times as many are chosen by how many signs differ, and the nearest of those by what
        the vector's numbers add up to where the signs agree, which tells more and costs more.
        """
        if not len(self._numbers):
            return []
        asked = np.frombuffer(signature(vector), np.uint64)
        # Word by word: a sum over so short an axis costs ten times as much.
        differing = np.zeros(len(self._numbers), np.uint16)
        for at in range(self._words.shape[1]):
            differing += np.bitwise_count(self._words[:, at] ^ asked[at])
        some = _least(differing, limit * WIDER)
        some = some[_least(-_sums(self._words[some].view(np.uint8), vector), limit)]
        nearest: list[int] = np.unique(self._numbers[some] % _DOCUMENTS).tolist()
        return nearest


async def read(tx: Tx, user_id: UUID, source: Source, space: Space) -> Signs:
    """All that there are of a user in a space: 5 MB of 100,000."""
    # Rows as they lie: to put them in order, or together, would cost more than to read them.
    rows = await tx.fetch(
        "select block, bits from signatures where user_id = $1 and source = $2 and model = $3",
        user_id, source, space.id,
    )  # fmt: skip
    many = _many(space)
    blocks = np.array([row["block"] for row in rows], np.int64)
    numbers = (blocks[:, None] * many + np.arange(many)).ravel()
    bits = np.frombuffer(b"".join([row["bits"] for row in rows]), np.uint64)
    return Signs(numbers, bits.reshape(len(numbers), _size(space) // 8))


def _sums(signed: NDArray[np.uint8], vector: Sequence[float]) -> NDArray[np.float32]:
    """For each signature (one in a row) the sum of the vector's numbers where it has a 1: looked up
    byte by byte, an eighth of the work."""
    of_byte = np.asarray(vector, np.float32).reshape(-1, 8) @ _BITS.T
    sums: NDArray[np.float32] = (
        of_byte.ravel().take(signed + np.arange(0, of_byte.size, 256)).sum(axis=1)
    )
    return sums


def _least(values: NDArray[Any], count: int) -> NDArray[np.intp]:
    """Where the `count` least values are."""
    if len(values) <= count:
        return np.arange(len(values))
    return np.argpartition(values, count)[:count]


def signature(vector: Sequence[float]) -> bytes:
    """The signs of a vector, eight in a byte."""
    return np.packbits(np.asarray(vector) > 0).tobytes()


def _size(space: Space) -> int:
    return space.dimension // 8


def _many(space: Space) -> int:
    """Documents whose signatures lie in one row."""
    return _ROW // _size(space)
