"""Texts encoded for a user's spaces, before the transaction that stores them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


class Encoder(Protocol):
    """What makes vectors of one model. See mira.memory.embedding."""

    @property
    def model(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    async def texts(self, texts: Sequence[str]) -> Vectors:
        """The vectors of texts to be found. Raises Unavailable while it cannot."""
        ...

    async def queries(self, texts: Sequence[str]) -> Vectors:
        """The vectors of what is looked for; these go first. Raises as `texts` does."""
        ...


class Encoders(Protocol):
    """The encoders of this process, by model."""

    @property
    def current(self) -> Encoder | None:
        """The one that new vectors come from; None if there are to be none."""
        ...

    def of(self, model: str) -> Encoder | None:
        """That of a model which a user still has vectors of; None if it is not there."""
        ...


#: For each text, its vector in each model.
Encoded = Mapping[str, Mapping[str, Sequence[float]]]


async def encode(encoders: Encoders, models: Sequence[str], texts: Sequence[str]) -> Encoded:
    """Encode `texts` for those of `models` that have an encoder. Raises Unavailable."""
    unique = list(dict.fromkeys(texts))
    encoded: dict[str, dict[str, Sequence[float]]] = {text: {} for text in unique}
    for model in dict.fromkeys(models):
        encoder = encoders.of(model)
        if encoder is None or not unique:
            continue
        for text, vector in zip(unique, await encoder.texts(unique), strict=True):
            encoded[text][model] = vector.tolist()
    return encoded
