"""A segment that is too long for one question, in pieces of which each fits; no word is lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from mira.memory.chunks import Line

#: What stands around each line in a question, in characters.
FRAME = 40
#: A message longer than this share of a piece is cut where a line, a sentence or a word ends.
SHARE = 0.6


def pieces(lines: Sequence[Line], most: int) -> list[tuple[Line, ...]]:
    """The lines in order, in groups of at most `most` characters; at least one group if there is
    a line. A longer line is in several groups, part by part."""
    groups: list[list[Line]] = []
    size = 0
    for line in lines:
        for text in _cut(line.text, max(200, int(most * SHARE))):
            weight = len(text) + FRAME
            if not groups or size + weight > most:
                groups.append([])
                size = 0
            groups[-1].append(line if text == line.text else replace(line, text=text))
            size += weight
    return [tuple(group) for group in groups]


def bundles(notes: Sequence[str], most: int) -> list[tuple[str, ...]]:
    """Notes in order, in groups of at most `most` characters together, but of two at least (except
    the last): so joining them comes to an end."""
    groups: list[list[str]] = []
    for note in notes:
        last = groups[-1] if groups else None
        if last is None or (len(last) >= 2 and sum(map(len, last)) + len(note) > most):
            groups.append([note])
        else:
            last.append(note)
    return [tuple(group) for group in groups]


def _cut(text: str, most: int) -> Iterator[str]:
    start = 0
    while len(text) - start > most:
        stop = start + most
        for mark in ("\n", ". ", " "):
            at = text.rfind(mark, start + most // 2, stop)
            if at > start:
                stop = at + len(mark)
                break
        yield text[start:stop].strip()
        start = stop
    yield text[start:].strip()
