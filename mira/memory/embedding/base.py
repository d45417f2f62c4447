"""The port of embedding models: texts in, unit vectors out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

#: float32, L2-normalised: one of them has shape [d], several have [n, d].
Vectors = NDArray[np.float32]

#: What a text is to be: looked for, or looked up. Asymmetric models encode the two unlike.
Kind = Literal["query", "text"]


class Backend(Protocol):
    """A loaded model. Every method may be called from several threads at once."""

    @property
    def model(self) -> str:
        """Name and weights, such as `all-MiniLM-L6-v2@53aa51172d14`: other weights, other name."""
        ...

    @property
    def dimension(self) -> int: ...

    @property
    def asymmetric(self) -> bool:
        """Whether a query's vector differs from the same text's as a text."""
        ...

    def weigh(self, text: str) -> int:
        """About how many tokens of work `text` is, at least 1. Cheap: the event loop asks it."""
        ...

    def encode(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """The vectors of `texts` (one or more, all of them valid Unicode), in their order."""
        ...


class SharedVectors(Protocol):
    """A cache beyond this process. It may forget anything, at any time, and never raises."""

    async def get(self, keys: Sequence[str]) -> Sequence[bytes | None]:
        """What is kept under each key, in order."""
        ...

    async def put(self, entries: Mapping[str, bytes]) -> None: ...


def weigh_text(text: str, longest: int) -> int:
    """The usual estimate of tokens: three characters each in ASCII, one otherwise."""
    tokens = len(text) // 3 if text.isascii() else len(text)
    return min(tokens + 2, longest)
