"""Things that are alike, put into sets of bounded size by cutting where they are least alike."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Protocol, TypeVar


class _Ordered(Hashable, Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


T = TypeVar("T", bound=_Ordered)


def clusters(edges: Sequence[tuple[T, T, float]], *, most: int) -> list[tuple[T, ...]]:
    """Sets of two to `most` things that hang together by `edges` (one, other, likeness).

    The strongest edges join first, and an edge that would make a set too large is cut: so what is
    cut is weaker than what holds the sets on its two sides together. No thing is in two sets. The
    same edges give the same sets, in whatever order they come; each is sorted, and so are they.
    """
    set_of: dict[T, set[T]] = {}
    ordered = sorted(
        ((min(a, b), max(a, b), likeness) for a, b, likeness in edges if a != b),
        key=lambda edge: (-edge[2], edge[0], edge[1]),
    )
    for one, other, _ in ordered:
        left = set_of.setdefault(one, {one})
        right = set_of.setdefault(other, {other})
        if left is right or len(left) + len(right) > most:
            continue
        left |= right
        for thing in right:
            set_of[thing] = left
    unique = {id(found): found for found in set_of.values() if len(found) > 1}
    return sorted(tuple(sorted(found)) for found in unique.values())
