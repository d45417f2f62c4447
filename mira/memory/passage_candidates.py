"""Which passages a search looks at closely: those that their words bring up. Pure.

Words count for the message that holds them and, as context, for its neighbours. Nothing is read
twice for that: neighbours have the numbers next to a message's own, so that postings of single
messages give both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mira.memory.bm25 import Floats, Ints, PostingList, gather, saturate


class Words:
    """Posting lists of the terms of a search, laid out for weighing."""

    def __init__(self, lists: Sequence[PostingList], average: float) -> None:
        found = gather(lists)
        self.terms = tuple(one.term for one in lists)
        #: The documents that hold a term, and those beside them (which need not exist); rising.
        self.docs = _with_neighbours(found.docs)
        at = np.searchsorted(self.docs, found.docs)
        tf = np.zeros((len(lists), len(self.docs)))
        tf[:, at] = found.tf
        # Of a document without any of the terms the length is not known here.
        length = np.full(len(self.docs), average)
        length[at] = found.lengths
        self._own = saturate(tf, length, average)
        self._around = saturate(_spread(tf, self.docs), _spread(length, self.docs), 3 * average)

    def best(self, weights: Mapping[str, float], depth: int) -> set[int]:
        """The `depth` best documents by their own words, and as many by those around them."""
        weighed = np.array([weights.get(term, 0.0) for term in self.terms])
        result: set[int] = set()
        for lane in (self._own, self._around):
            result.update(self._first(weighed @ lane, depth))
        return result

    def _first(self, scores: Floats, depth: int) -> list[int]:
        if len(scores) > depth:
            some = np.argpartition(-scores, depth)[:depth]
        else:
            some = np.arange(len(scores))
        found: list[int] = self.docs[some[scores[some] > 0]].tolist()
        return found


def _with_neighbours(docs: Ints) -> Ints:
    """Rising numbers, with those next to them."""
    if not len(docs):
        return docs
    low = docs[0] - 1
    there = np.zeros(docs[-1] - low + 2, bool)
    for step in (0, 1, 2):
        there[docs - docs[0] + step] = True
    result: Ints = np.flatnonzero(there) + low
    return result


def _spread(values: Floats, docs: Ints) -> Floats:
    """Values (… × document) summed with those of the documents numbered next to it."""
    result = values.copy()
    beside = np.flatnonzero(np.diff(docs) == 1)
    result[..., beside] += values[..., beside + 1]
    result[..., beside + 1] += values[..., beside]
    return result
