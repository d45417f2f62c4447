"""A segment that is too long for one question, in pieces of which each fits; no word is left out
but the middles of pasted walls of text."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from mira.memory.chunks import Line, shortened

#: A single message counts with at most this share of a piece: what is longer was pasted.
SHARE = 0.6


def pieces(lines: Sequence[Line], most: int) -> list[tuple[Line, ...]]:
    """The lines in order, in groups of at most `most` characters; at least one group if there is
    a line."""
    longest = max(200, int(most * SHARE))
    groups: list[list[Line]] = []
    size = 0
    for line in lines:
        kept = replace(line, text=shortened(line.text, longest))
        # What surrounds each line in the question counts, too.
        weight = len(kept.text) + 40
        if not groups or size + weight > most:
            groups.append([])
            size = 0
        groups[-1].append(kept)
        size += weight
    return [tuple(group) for group in groups]


def bundles(notes: Sequence[str], most: int) -> list[tuple[str, ...]]:
    """Notes in order, in groups of at most `most` characters together, two at least in each but
    the last: joining them comes to an end."""
    groups: list[list[str]] = []
    for note in notes:
        last = groups[-1] if groups else None
        if last is None or (len(last) >= 2 and sum(map(len, last)) + len(note) > most):
            groups.append([note])
        else:
            last.append(note)
    return [tuple(group) for group in groups]
