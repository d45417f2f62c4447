"""Texts encoded for a user's spaces, before the transaction that stores them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mira.errors import Unavailable

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


def ready(encoders: Encoders) -> Encoder | None:
    """The current encoder, if there is one and its model is loaded."""
    current = encoders.current
    if current is None:
        return None
    try:
        return current if current.model else None
    except Unavailable:
        return None


async def encode(encoders: Encoders, models: Sequence[str], texts: Sequence[str]) -> Encoded:
    """Encode `texts` for those of `models` that have an encoder which can.

    What is not encoded now is stored without a vector and gets it later (see reembedding.py):
    nothing that is to be remembered waits for a model.
    """
    unique = list(dict.fromkeys(texts))
    encoded: dict[str, dict[str, Sequence[float]]] = {text: {} for text in unique}
    for model in dict.fromkeys(models):
        encoder = encoders.of(model)
        if encoder is None or not unique:
            continue
        with suppress(Unavailable):
            for text, vector in zip(unique, await encoder.texts(unique), strict=True):
                encoded[text][model] = vector.tolist()
    return encoded
