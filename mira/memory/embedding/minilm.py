"""The embedding model that ships with MIRA: all-MiniLM-L6-v2 on ONNX Runtime, 384 numbers.

Equal to sentence-transformers on the same weights within 1e-5, at a third of its time, without
torch. Weights are float32: as 8-bit integers they would be twice as fast, and another model.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mira.memory.embedding.base import Kind, Vectors, weigh_text
from mira.memory.embedding.minilm_files import (
    SHA256,
    TOKENIZER,
    WEIGHTS,
    checked,
    graph_file,
    packaged,
)
from mira.settings import keep_tokenizers_in_their_thread

NAME = "all-MiniLM-L6-v2"
DIMENSION = 384
#: What the model reads of a text, in tokens, as sentence-transformers has it.
LONGEST = 256
#: So many characters of a long text are tried first: nearly always they hold all that is read.
FIRST = 4096


class MiniLM:
    """The model, loaded. Threads may share it: each computes in itself, on one core."""

    model = f"{NAME}@{SHA256[WEIGHTS][:12]}"
    dimension = DIMENSION
    asymmetric = False

    def __init__(self, models: Path, source: Path | None = None) -> None:
        """Load it, making its graph in the folder `models` first if need be: 0.5 s, or 3.

        `source` is the folder of weights and tokenizer; None is the installed package.
        Raises EmbedderUnavailable.
        """
        import onnxruntime
        from tokenizers import Tokenizer

        keep_tokenizers_in_their_thread()
        source = source or packaged()
        self._tokenizer = Tokenizer.from_file(str(checked(source, TOKENIZER)))
        # The file asks for 128 tokens, neither more nor less. Less would do for short texts, which
        # padding makes five times as dear; and the model reads 256.
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(LONGEST)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            str(graph_file(source, models)), options, providers=["CPUExecutionProvider"]
        )

    def weigh(self, text: str) -> int:
        return weigh_text(text, LONGEST)

    def encode(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """As Backend.encode; queries and texts are alike."""
        tokens = self._tokens(texts)
        ids = np.zeros((len(tokens), max(map(len, tokens))), np.int64)
        mask = np.zeros_like(ids)
        for row, found in enumerate(tokens):
            ids[row, : len(found)] = found
            mask[row, : len(found)] = 1
        vectors: Vectors = self._session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
        return vectors

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of each text."""
        tokens = self._encoded([_first(text) for text in texts])
        for row, (text, found) in enumerate(zip(texts, tokens, strict=True)):
            if len(found) < LONGEST and len(text) > FIRST:  # blanks, or one endless word
                tokens[row] = self._encoded([text])[0]
        return tokens

    def _encoded(self, texts: list[str]) -> list[list[int]]:
        # Of the tokenizer's calls only those for batches let other threads run meanwhile.
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(texts)]


def _first(text: str) -> str:
    """The beginning of a long text, up to a space: no token reaches across one."""
    if len(text) <= FIRST:
        return text
    space = text.rfind(" ", 0, FIRST)
    return text[:space] if space > 0 else text
