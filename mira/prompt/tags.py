"""Our marks in the prompt, which nothing that others wrote can imitate.

What comes from the system stands in tags `<mira:…>`. The model is told so, and therefore every
other text in the prompt, whoever wrote it, is freed of what looks like one: its bracket becomes
`‹`, which reads the same and means nothing.
"""

from __future__ import annotations

import re

PREFIX = "mira:"

#: Stands between letters without being seen. Possessive: what follows is never in it, and a long
#: run of blanks must not be gone through again and again.
_UNSEEN = (
    r"[\s\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]*+"
)
_BRACKETS = "<＜﹤"
_LOOK_ALIKE = re.compile(
    f"[{_BRACKETS}](?={_UNSEEN}(?:[/／]{_UNSEEN})?{_UNSEEN.join('mira')}{_UNSEEN}[:：])",
    re.IGNORECASE,
)


def wrapped(name: str, text: str) -> str:
    """`text` between tags of our own. It must hold nothing of others that is not `neutral`."""
    return f"<{PREFIX}{name}>\n{text}\n</{PREFIX}{name}>"


def neutral(text: str) -> str:
    """`text` without anything that looks like a tag of ours; the same length, and the same text
    if there is nothing."""
    if not any(bracket in text for bracket in _BRACKETS):
        return text
    return _LOOK_ALIKE.sub("‹", text)


def quoted(text: str, most: int) -> str:
    """`text` as one line of at most `most` characters, neutral: how others' words stand in a
    section."""
    line = " ".join(text[: most * 4].split())
    if len(line) > most or len(text) > most * 4:
        line = line[: most - 1].rstrip() + "…"
    return neutral(line)


def passage(text: str, most: int) -> str:
    """`text` with its lines, of at most `most` characters, neutral."""
    kept = text.strip()
    if len(kept) > most:
        kept = kept[: most - 1].rstrip() + "…"
    return neutral(kept)
