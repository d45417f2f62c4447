"""Embedding: texts become vectors, off the event loop, in small batches, each text once.

`Embedder` is what the house uses; `backend_for` reads the setting that names a model.
"""

from mira.memory.embedding.base import Backend, Kind, SharedVectors, Vectors
from mira.memory.embedding.choose import DEFAULT_MODEL, backend_for
from mira.memory.embedding.embedder import Embedder

__all__ = [
    "DEFAULT_MODEL",
    "Backend",
    "Embedder",
    "Kind",
    "SharedVectors",
    "Vectors",
    "backend_for",
]
