"""Words of others inside of a prompt: data between marks that they cannot close."""

from __future__ import annotations

import re
from pathlib import Path

#: The texts of our questions, each with the data in the one of its name and `_data`.
TEMPLATES = Path(__file__).parent / "templates"

#: The marks that our templates use. Anything like them in somebody's words is disarmed.
_MARKS = re.compile(
    r"<(?=\s*/?\s*(?:line|earlier|conversation|memory|memories|new|candidate|set|merge|entity|group"
    r"|entities|known|summary|passage)\b)",
    re.IGNORECASE,
)


def quoted(text: str) -> str:
    """`text`, so that it cannot open or close a mark of ours."""
    return _MARKS.sub("‹", text)
