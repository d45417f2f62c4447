"""The part of a long text that has most to do with what was looked for. Pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from mira.memory.terms import terms

#: Characters of a text that are looked through.
READ = 20_000
#: A piece longer than this share of an excerpt is cut, so that several fit.
_SHARE = 0.5

_END = re.compile(r"(?<=[.!?…])\s+|\n+|(?<=[。！？])")


def excerpt(text: str, phrases: Sequence[str], *, most: int) -> str:
    """At most `most` characters of `text`: of whole sentences, as far as they fit, those in a row
    that hold most of the phrases' terms, the first of equals; `…` stands for what is left out."""
    text = text.strip()
    if len(text) <= most:
        return text
    wanted = {term for phrase in phrases for term in terms(phrase)}
    pieces = _pieces(text[:READ], int(most * _SHARE))
    held = [wanted.intersection(terms(text[start:end])) for start, end in pieces]
    # Room for the marks at either end.
    room = most - 4
    best = (-1, 0, pieces[0][1])
    last = 0
    for first, (start, _) in enumerate(pieces):
        last = max(last, first)
        while last + 1 < len(pieces) and pieces[last + 1][1] - start <= room:
            last += 1
        found = len(set().union(*held[first : last + 1]))
        if found > best[0]:
            best = (found, start, pieces[last][1])
    _, start, end = best
    before = "… " if start else ""
    after = " …" if end < len(text) else ""
    return f"{before}{text[start:end].strip()}{after}"


def _pieces(text: str, longest: int) -> list[tuple[int, int]]:
    """Where each sentence begins and ends; long ones in parts that end between words."""
    bounds = [0, *(match.end() for match in _END.finditer(text)), len(text)]
    pieces: list[tuple[int, int]] = []
    for start, end in itertools.pairwise(bounds):
        while end - start > longest:
            cut = text.rfind(" ", start + longest // 2, start + longest)
            cut = cut + 1 if cut > start else start + longest
            pieces.append((start, cut))
            start = cut
        if end > start:
            pieces.append((start, end))
    return pieces
