"""The pool of a search over the history: its candidates, and all that their ranking goes by.

The statements run in the caller's transactions, one after another, since each needs what the one
before it found: those of `begin` while the phrases are encoded, those of `read_pool` afterwards. A
message that another transaction takes out meanwhile is simply not among the rows, which are read
after the candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

import msgspec
import numpy as np

from mira.memory.asked import Asked
from mira.memory.bm25 import Ints, PostingList, idf
from mira.memory.passage_candidates import Words
from mira.memory.passage_features import Facts, Matrix
from mira.memory.query import RecallQuery
from mira.store import passage_search, postings, signatures
from mira.store.database import Tx
from mira.store.passage_search import Rows
from mira.store.postings import Corpus, TermDocuments
from mira.store.search_opening import OfPassages
from mira.store.signatures import Signs
from mira.store.spaces import Source

#: How many candidates each lane brings.
DEPTH = 80
#: How many postings are read for a search; commoner terms only weigh what the others found.
BUDGET = 10_000
#: How many of the documents found by rare terms are weighed with the common ones.
WEIGHED = 400


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """What one search found, before it is ranked."""

    asked: list[Asked]
    #: One for each phrase; None if meaning is left out, and `dense` says why.
    vectors: Matrix | None
    dense: str
    #: The candidates and their neighbours, as the facts have them.
    rows: Rows
    facts: Facts


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """What a search has read before it has vectors."""

    opening: OfPassages
    asked: list[Asked]
    #: The postings of the rarer terms; the terms that are too common for that; whom both found.
    lists: list[TermDocuments]
    common: list[str]
    by_words: set[int]
    #: Of a long history, where there are vectors.
    signs: Signs | None


async def begin(tx: Tx, user_id: UUID, opening: OfPassages, asked: list[Asked]) -> Begun:
    """What needs no vector, of all phrases."""
    wanted = list(dict.fromkeys(term for one in asked for term in one.terms))
    lists, common = await postings.lists(tx, user_id, Source.PASSAGES, wanted, budget=BUDGET)
    by_words = await _by_words(tx, user_id, opening.corpus, asked, lists, common)
    signs = None
    if opening.spaces and passage_search.method(opening.corpus.documents) == "signs":
        signs = await signatures.read(tx, user_id, Source.PASSAGES, opening.spaces.active)
    return Begun(
        opening=opening, asked=asked, lists=lists, common=common, by_words=by_words, signs=signs
    )


async def read_pool(
    tx: Tx, user_id: UUID, query: RecallQuery, begun: Begun, vectors: Matrix | None, dense: str
) -> Pool:
    """The candidates of all phrases, their neighbours, and what is known of them. `dense` says why
    there are no vectors, where there are none."""
    opening, corpus, docs = begun.opening, begun.opening.corpus, set(begun.by_words)
    space = None if opening.spaces is None or vectors is None else opening.spaces.active
    if space is not None and vectors is not None:
        dense = passage_search.method(corpus.documents)
        for vector in vectors:
            near = await passage_search.nearest(
                tx, user_id, space, vector.tolist(), documents=corpus.documents, limit=DEPTH,
                signs=begun.signs,
            )  # fmt: skip
            docs.update(near.parts, near.windows)
    docs -= set(opening.without)
    around = docs | {doc - 1 for doc in docs} | {doc + 1 for doc in docs}
    rows = await passage_search.rows(
        tx, user_id, sorted(around), opening.names.timezone, query.as_of
    )
    there = rows.doc.tolist()
    more = await postings.among(tx, user_id, Source.PASSAGES, begun.common, there)
    stored = None
    if space is not None:
        stored = await passage_search.stored(tx, user_id, space, [d for d in there if d in docs])
    return Pool(
        asked=begun.asked, vectors=vectors, dense=dense, rows=rows,
        facts=_arrays(rows, docs, corpus, [*begun.lists, *more], stored),
    )  # fmt: skip


async def _by_words(
    tx: Tx, user_id: UUID, corpus: Corpus, asked: Sequence[Asked],
    lists: Sequence[TermDocuments], common: Sequence[str],
) -> set[int]:  # fmt: skip
    """The best documents of each phrase by words. Rare terms choose whom the common ones weigh."""
    if not lists:
        return set()
    found = Words([_posting_list(one) for one in lists], corpus.average)
    weights = _weights(corpus, lists)
    if not common:
        return {doc for one in asked for doc in found.best(_only(weights, one), DEPTH)}
    some = {doc for one in asked for doc in found.best(_only(weights, one), WEIGHED)}
    near = sorted(some | {doc - 1 for doc in some} | {doc + 1 for doc in some})
    more = await postings.among(tx, user_id, Source.PASSAGES, common, near)
    rare = [_among(_posting_list(one), near) for one in lists]
    found = Words([*rare, *(_posting_list(one) for one in more)], corpus.average)
    weights |= _weights(corpus, more)
    return {doc for one in asked for doc in found.best(_only(weights, one), DEPTH)}


def _arrays(
    rows: Rows, candidates: set[int], corpus: Corpus, lists: Sequence[TermDocuments],
    stored: passage_search.Stored | None,
) -> Facts:  # fmt: skip
    docs = rows.doc
    tf = np.zeros((len(lists), len(docs)))
    for at, one in enumerate(lists):
        listed = _among(_posting_list(one), docs)
        tf[at, np.searchsorted(docs, listed.docs)] = listed.tf
    dimension = 1 if stored is None else stored.vectors.shape[1]
    parts, part_of = np.zeros((0, dimension), np.float32), np.zeros(0, np.int64)
    windows = np.zeros((len(docs), dimension), np.float32)
    if stored is not None and len(stored.docs):
        position = np.searchsorted(docs, stored.docs)
        whole = stored.units == 0
        windows[position[whole]] = stored.vectors[whole]
        parts, part_of = stored.vectors[~whole], position[~whole]
    return Facts(
        docs=docs,
        candidate=np.array([doc in candidates for doc in docs.tolist()], bool),
        segment=rows.segment, by_user=rows.by_user, length=rows.length, asks=rows.asks,
        timed=rows.timed, counted=rows.counted, day=rows.day,
        terms=tuple(one.term for one in lists),
        tf=tf,
        idf=idf(corpus.documents, np.array([one.documents for one in lists], np.int64)),
        average=corpus.average,
        parts=parts,
        part_of=part_of,
        windows=windows,
    )  # fmt: skip


def _weights(corpus: Corpus, lists: Sequence[TermDocuments]) -> dict[str, float]:
    return {one.term: float(idf(corpus.documents, one.documents)) for one in lists}


def _only(weights: Mapping[str, float], asked: Asked) -> dict[str, float]:
    return {term: weights[term] for term in asked.terms if term in weights}


def _posting_list(one: TermDocuments) -> PostingList:
    return PostingList(
        one.term, one.documents, np.asarray(one.docs, np.int64), np.asarray(one.tf, np.int64),
        np.asarray(one.lengths, np.int64),
    )  # fmt: skip


def _among(one: PostingList, docs: Sequence[int] | Ints) -> PostingList:
    """What a list says of `docs`, which rise."""
    wanted = np.asarray(docs, np.int64)
    if not len(wanted):
        return one._replace(docs=one.docs[:0], tf=one.tf[:0], lengths=one.lengths[:0])
    # Both rise: ten times as quick as to look for any in any.
    at = np.minimum(np.searchsorted(wanted, one.docs), len(wanted) - 1)
    kept = wanted[at] == one.docs
    return one._replace(docs=one.docs[kept], tf=one.tf[kept], lengths=one.lengths[kept])
