"""Tokens as a real model counts them, offline: o200k_base, the vocabulary of OpenAI's models."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

NAME = "o200k_base"
#: What a message costs besides its text.
PER_MESSAGE = 4


@cache
def _encoding() -> Any:
    with warnings.catch_warnings():
        # It reads its tables in a way that Python advises against.
        warnings.simplefilter("ignore", DeprecationWarning)
        import bpe_openai

        return bpe_openai.get_encoding(NAME)


@cache
def count(text: str) -> int:
    """The tokens of `text`."""
    return len(_encoding().encode(text))
