"""Any model of sentence-transformers, by name or folder; needs the extra `mira[torch]`."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mira.errors import EmbedderUnavailable
from mira.memory.embedding.base import Kind, Vectors, weigh_text
from mira.memory.heavy import importing
from mira.settings import keep_tokenizers_in_their_thread

#: What is taken for the longest text of a model that names no limit, in tokens.
LONGEST = 512


class SentenceTransformerModel:
    """A model, loaded. It computes in one thread at a time: its tokenizer bears no more."""

    def __init__(self, name: str) -> None:
        """Load the model `name`, on the processor; torch gets one thread.

        A name that is no folder is looked for where Hugging Face keeps its models, and fetched if
        it is not there. Raises EmbedderUnavailable.
        """
        try:
            with importing():
                import torch
                from sentence_transformers import SentenceTransformer
        except ImportError:
            raise EmbedderUnavailable(
                f"The embedding model {name} needs sentence-transformers. "
                'Install it: pip install "mira[torch]"; or unset MIRA_EMBEDDING_MODEL.'
            ) from None
        keep_tokenizers_in_their_thread()
        torch.set_num_threads(1)
        try:
            self._model = SentenceTransformer(name, device="cpu")
        except Exception as error:  # whatever the library and those below it raise
            raise EmbedderUnavailable(
                f"The embedding model {name} cannot be loaded ({type(error).__name__}). "
                "Set MIRA_EMBEDDING_MODEL to a folder of sentence-transformers, or unset it."
            ) from error
        self._lock = threading.Lock()
        self._longest = int(self._model.max_seq_length or LONGEST)
        self.model = f"{Path(name).name}@{_fingerprint(self._model)[:12]}"
        probe = {kind: self.encode(["a probe"], kind) for kind in ("query", "text")}
        self.dimension = int(probe["text"].shape[1])
        self.asymmetric = not np.array_equal(probe["query"], probe["text"])

    def weigh(self, text: str) -> int:
        return weigh_text(text, self._longest)

    def encode(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """As Backend.encode. Prompts and encoders of its own for queries are the model's affair."""
        encode = self._model.encode_query if kind == "query" else self._model.encode_document
        with self._lock:
            made = encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(made, np.float32)


def _fingerprint(model: Any) -> str:
    """What was loaded, whatever its name: weights, prompts, limits, parts."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(f"{name}{tuple(value.shape)}{value.dtype}".encode())
        digest.update(value.contiguous().view(-1).view(_bytes()).numpy())
    parts = [type(part).__name__ for part in model.modules()]
    about = [model.prompts, model.default_prompt_name, model.max_seq_length, parts]
    digest.update(json.dumps(about).encode())
    return digest.hexdigest()


def _bytes() -> Any:
    import torch

    return torch.uint8
