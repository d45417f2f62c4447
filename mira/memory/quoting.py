"""Words of others inside of a prompt: data between marks that they cannot close."""

from __future__ import annotations

import re
from pathlib import Path

#: The texts of our questions, each with the data in the one of its name and `_data`.
TEMPLATES = Path(__file__).parent / "templates"

#: The marks that our templates use. Anything like them in somebody's words is disarmed.
_BLANK = r"[\s\u200b-\u200f\u2060\ufeff]*"
_MARKS = re.compile(
    rf"[<\uff1c](?={_BLANK}/?{_BLANK}"
    r"(?:line|earlier|earlier_note|conversation|memory|memories|new|candidate|set|merge|entity|group"
    r"|entities|known|summary|passage)\b)",
    re.IGNORECASE,
)


def quoted(text: str) -> str:
    """`text`, so that it cannot open or close a mark of ours."""
    return _MARKS.sub("‹", text)
