"""Text cut into sentences, where a mistake costs little: abbreviations and figures are known."""

from __future__ import annotations

import re

_END = re.compile(r"(?:[.!?…]+[\"'”’»)\]]*(?=\s|$)|[。！？]+[」』”]?)\s*|\n+\s*")
#: After these a point ends no sentence.
_SHORT = re.compile(
    r"(?:^|[\s(\"'“„])(?:Dr|Mr|Mrs|Ms|Mx|Prof|St|Sr|Jr|Mag|Ing|Nr|No|vs|etc|approx|ca|bzw|usw|inkl"
    r"|Sra|Mme|Mlle|[A-Z]|e\.\s?g|i\.\s?e|z\.\s?B|d\.\s?h|u\.\s?a|z|d|u)\.$"
)
#: "8. Mai", "am 3. gegen Mittag": an ordinal, not an end.
_ORDINAL = re.compile(r"(?:^|\s)\d{1,2}\.$")
_MERIDIEM = re.compile(r"\b[ap]\.\s?m\.$", re.IGNORECASE)
_LIST = re.compile(r"^(?:[-*•]|\d{1,2}[.)])\s+")


def sentences(text: str) -> list[str]:
    """The sentences of `text`, in order, without white space around them; none is empty."""
    found: list[str] = []
    start = 0
    for end in _END.finditer(text):
        before, after = text[start : end.end()].rstrip(), text[end.end() :]
        if after and "\n" not in end[0] and _goes_on(before, after):
            continue
        found.append(before)
        start = end.end()
    found.append(text[start:])
    tidy = (_LIST.sub("", one.strip()) for one in found)
    return [one for one in tidy if any(letter.isalnum() for letter in one)]


def _goes_on(before: str, after: str) -> bool:
    """Whether a sentence goes on after what looks like its end."""
    if _SHORT.search(before) or (after[0].islower() and not before.endswith(("!", "?", "。"))):
        return True
    if _MERIDIEM.search(before):
        return not after[0].isupper()
    if _ORDINAL.search(before):
        # "in room 8. Then" against "am 8. Mai": what comes next is a capital in both.
        return re.match(r"[A-ZÄÖÜ]?[a-zäöü]+\b", after) is not None and _month_follows(after)
    return False


def _month_follows(after: str) -> bool:
    return (
        re.match(r"(?:J[aä]n|Feb|M[aä]r|Apr|Mai|Ju[nl]|Aug|Sep|O[kc]t|Nov|De[zc])", after)
        is not None
    )
