"""Vectors already made, by the hash of their text: in this process, and shared beyond it.

Keys carry model and kind, so vectors of unlike spaces can never meet. What is asked is rarely
asked twice, and a round trip would stand before the answer: so only texts are shared, and queries
are kept in this process alone.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence

import numpy as np

from mira.memory.embedding.base import Kind, SharedVectors, Vectors

#: Vectors kept in this process: 12 MB of 384 numbers each.
KEPT = 8192


class Remembered:
    """A cache in two steps; the second is optional."""

    def __init__(
        self,
        model: str,
        dimension: int,
        *,
        asymmetric: bool,
        shared: SharedVectors | None = None,
        kept: int = KEPT,
    ) -> None:
        self._model = model
        self._bytes = dimension * 4
        self._asymmetric = asymmetric
        self._shared = shared
        self._kept = kept
        self._vectors: OrderedDict[str, Vectors] = OrderedDict()

    def key(self, data: bytes, kind: Kind) -> str:
        """The key of a text in UTF-8. Where a model knows no kinds, both have the same key."""
        kind = kind if self._asymmetric else "text"
        return f"vector:{self._model}:{kind}:{hashlib.sha256(data).hexdigest()}"

    def here(self, key: str) -> Vectors | None:
        """What this process keeps: never to be written to."""
        found = self._vectors.get(key)
        if found is not None:
            self._vectors.move_to_end(key)
        return found

    async def elsewhere(self, keys: Sequence[str]) -> dict[str, Vectors]:
        """What is shared of `keys`; from now on it is kept here, too."""
        if self._shared is None or not keys:
            return {}
        copies = await self._shared.get(keys)
        found = {
            key: np.frombuffer(data, np.float32)
            for key, data in zip(keys, copies, strict=True)
            if data is not None and len(data) == self._bytes
        }
        self.keep(found)
        return found

    def keep(self, vectors: Mapping[str, Vectors]) -> None:
        """Keep them in this process, letting go of those that were used longest ago."""
        for key, vector in vectors.items():
            vector.flags.writeable = False
            self._vectors[key] = vector
            self._vectors.move_to_end(key)
        while len(self._vectors) > self._kept:
            self._vectors.popitem(last=False)

    async def share(self, vectors: Mapping[str, Vectors]) -> None:
        if self._shared is not None and vectors:
            await self._shared.put({key: vector.tobytes() for key, vector in vectors.items()})
