"""Text that every store and every client can hold."""

from __future__ import annotations

import re

#: What Postgres (NUL) or UTF-8 (lone surrogates) cannot hold.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def is_storable(text: str) -> bool:
    """Whether `text` has neither NUL nor a lone surrogate."""
    return _UNSTORABLE.search(text) is None


def storable(text: str) -> str:
    """`text` with the replacement character in place of what cannot be stored."""
    return _UNSTORABLE.sub("\ufffd", text)
