"""Where a growing Markdown text can be cut, so that the part before is finished for good."""

from __future__ import annotations

import re

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


def settled(text: str) -> int:
    """How many characters of `text` are blocks that nothing that follows can change.

    The cut is before a line that begins a new block at the margin: after an empty line, outside
    of fenced code. Indented lines still belong to what came before.
    """
    cut = at = 0
    fence = ""
    after_blank = False
    for line in text.splitlines(keepends=True):
        complete = line.endswith("\n")
        if after_blank and not fence and line[:1].strip():
            cut = at
        if (match := _FENCE.match(line)) and complete:
            marks, rest = match.groups()
            if not fence:
                # Backticks behind backticks would make it code within a line.
                fence = marks if marks[0] == "~" or "`" not in rest else ""
            elif marks[0] == fence[0] and len(marks) >= len(fence) and not rest.strip():
                fence = ""
        after_blank = complete and not line.strip()
        at += len(line)
    return cut
