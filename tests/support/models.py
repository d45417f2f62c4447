"""The embedding model that ships with MIRA, in the form in which it runs: built once for all
tests, and kept between runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from mira.memory.embedding import Kind, Vectors
from mira.memory.embedding.minilm import MiniLM

MODELS = Path(__file__).resolve().parents[2] / ".cache" / "tests" / "models"


@lru_cache(maxsize=1)
def minilm() -> MiniLM:
    """The model, loaded once."""
    MODELS.mkdir(parents=True, exist_ok=True)
    return MiniLM(MODELS)


def lend_to(home: Path) -> None:
    """Put the built form into a home, which would otherwise build it again."""
    if not list(MODELS.glob("*.onnx")):
        minilm()
    # By its lock MIRA knows a home of its own from somebody else's directory.
    (home / "lock").touch(mode=0o600)
    models = home / "models"
    models.mkdir(mode=0o700, exist_ok=True)
    for built in MODELS.glob("*.onnx"):
        lent = models / built.name
        if not lent.exists():
            try:
                os.link(built, lent)
            except OSError:
                shutil.copy2(built, lent)


class Wide:
    """Another model: twice as many dimensions, and no likeness to the first."""

    model = "wide@1"
    dimension = 768
    asymmetric = False

    def weigh(self, text: str) -> int:
        return minilm().weigh(text)

    def encode(self, texts: Sequence[str], kind: Kind) -> Vectors:
        one = minilm().encode(texts, kind)
        both: Vectors = np.concatenate([one[:, ::-1], -one], axis=1, dtype=np.float32)
        both *= np.float32(0.5**0.5)
        return both
