"""Which embedding model a setting means."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mira.memory.embedding.base import Backend
from mira.memory.embedding.minilm import NAME, MiniLM

#: The model that ships with MIRA; the default of MIRA_EMBEDDING_MODEL.
DEFAULT_MODEL = NAME


def backend_for(name: str, models: Path) -> Callable[[], Backend]:
    """What loads the model `name`, to be called in a thread; `models` is the home's folder.

    Any name but the default's is a model of sentence-transformers: a folder, or a name there.
    """

    def load() -> Backend:
        if name == DEFAULT_MODEL:
            return MiniLM(models)
        from mira.memory.embedding.sentence_transformer import SentenceTransformerModel

        return SentenceTransformerModel(name)

    return load
