"""BM25 over one user's own texts, on arrays: postings in, scores out.

A posting list is what the store knows of one term: in which documents it occurs, how often, and
how long those are. `gather` lays the lists of a query side by side; `score` weighs them. Scores
are never negative, a document without any of the terms has 0, and the order of terms is of no
importance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: How soon more of the same term stops counting, and how much long documents are held back.
K1 = 1.2
B = 0.75


class PostingList(NamedTuple):
    """One term: the documents that hold it (rising), its frequency in each, and their lengths."""

    term: str
    #: In how many documents it occurs, whether or not all of them are listed.
    documents: int
    docs: Ints
    tf: Ints
    lengths: Ints


class Gathered(NamedTuple):
    """The documents of several posting lists (rising), their lengths, and term × document."""

    docs: Ints
    lengths: Ints
    tf: Floats


def idf(documents: int, count: Floats | Ints | int) -> Floats:
    """How much a term weighs that occurs in `count` of `documents`; never negative."""
    known = np.asarray(count, dtype=np.float64)
    return np.log1p(np.maximum(documents - known + 0.5, 0.0) / (known + 0.5))


def gather(lists: Sequence[PostingList]) -> Gathered:
    """Lay posting lists side by side."""
    if not lists:
        return Gathered(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, 0)))
    docs, first = np.unique(np.concatenate([one.docs for one in lists]), return_index=True)
    lengths = np.concatenate([one.lengths for one in lists])[first]
    tf = np.zeros((len(lists), len(docs)))
    for row, one in enumerate(lists):
        tf[row, np.searchsorted(docs, one.docs)] = one.tf
    return Gathered(docs, lengths, tf)


def saturate(tf: Floats, lengths: Floats | Ints, average: float) -> Floats:
    """What frequencies (term × document) count in documents of these lengths; 0 to K1 + 1."""
    held = K1 * (1 - B + B * np.asarray(lengths, dtype=np.float64) / max(average, 1e-9))
    return tf * (K1 + 1) / (tf + held)


def score(
    tf: Floats, lengths: Floats | Ints, average: float, weights: Floats | Sequence[float]
) -> Floats:
    """The score of each document: `tf` is term × document, `weights` the terms' idf (or any other
    weight), `average` the mean length of all the user's documents."""
    result: Floats = np.asarray(weights, dtype=np.float64) @ saturate(tf, lengths, average)
    return result
