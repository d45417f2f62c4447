"""Tokens of a prompt as a real model counts them, offline: o200k_base, of OpenAI's models."""

from __future__ import annotations

import json
import warnings
from functools import cache
from typing import Any

NAME = "o200k_base"


@cache
def _encoding() -> Any:
    with warnings.catch_warnings():
        # It reads its tables in a way that Python advises against.
        warnings.simplefilter("ignore", DeprecationWarning)
        import bpe_openai

        return bpe_openai.get_encoding(NAME)


def count(text: str) -> int:
    """The tokens of `text`."""
    return len(_encoding().encode(text))


def prompt_tokens(body: dict[str, Any]) -> int:
    """The tokens of all texts of a request to Anthropic's API, and of its tools as JSON."""
    found = texts(body.get("system"))
    for message in body.get("messages", ()):
        found += texts(message["content"])
    return sum(map(count, [*found, *(json.dumps(tool) for tool in body.get("tools", ()))]))


def texts(content: Any) -> list[str]:
    """The texts of a message's content, or of a system prompt."""
    if isinstance(content, str):
        return [content]
    return [block.get("text", "") for block in content or ()]
