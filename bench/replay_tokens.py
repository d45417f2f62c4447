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
    blocks = [*_blocks(body.get("system"))]
    for message in body.get("messages", ()):
        blocks += _blocks(message["content"])
    tools = sum(count(json.dumps(tool)) for tool in body.get("tools", ()))
    return tools + sum(count(block.get("text", "")) for block in blocks)


def _blocks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"text": content}]
    return list(content or ())
