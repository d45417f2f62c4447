"""The lanes of a search over one user's memories: by meaning, by words, by whom it is about.

Each lane gives its best documents with a score of its own; documents are numbers of the index.
`whole` is the user's corpus of memories.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

import numpy as np
from rapidfuzz import fuzz, process

from mira.memory.bm25 import Ints, PostingList, gather, idf, score
from mira.memory.entities import normalise
from mira.memory.terms import STOP_WORDS, terms, words
from mira.store import entities, memory_search, postings, vectors
from mira.store.database import Tx
from mira.store.memory_search import About
from mira.store.postings import Corpus, TermDocuments
from mira.store.signatures import Signs
from mira.store.spaces import Source, Space

#: How many postings are read for a search; terms beyond that only sort what others found.
BUDGET = 8000
#: How many of the documents found by rare terms are weighed with the common ones too.
WEIGHED = 500
#: How many entities count, how many memories of each, and how like a name must be.
ENTITIES, OF_EACH, LIKENESS = 5, 15, 85.0
#: Among how many of an entity's memories, the newest, the most important are looked for.
NEWEST = 100
#: The longest name, in words, that is looked for in a phrase.
LONGEST_NAME = 4

#: What a search takes of each lane: so many for each that is wanted, within these bounds.
DEEPER, SHALLOWEST, DEEPEST = 3, 40, 200

Lane = Mapping[int, float]
"""Scores by document."""


def depth(limit: int) -> int:
    """How many documents a lane is to give where `limit` are wanted in the end."""
    return min(max(DEEPER * limit, SHALLOWEST), DEEPEST)


async def dense(
    tx: Tx, user_id: UUID, whole: Corpus, space: Space, queries: Sequence[Sequence[float]],
    without: Collection[int], only: Collection[int] | None, *, most: int,
    signs: Signs | None = None,
) -> Lane:  # fmt: skip
    """By meaning: the cosine to the phrase that a memory is nearest to."""
    best: dict[int, float] = {}
    for query in queries:
        near = await vectors.nearest(
            tx, user_id, Source.MEMORIES, space, query, documents=whole.documents, limit=most,
            without=list(without), only=None if only is None else list(only), signs=signs,
        )  # fmt: skip
        for one in near:
            best[one.doc] = max(one.similarity, best.get(one.doc, -1.0))
    return best


async def lexical(
    tx: Tx, user_id: UUID, whole: Corpus, phrases: Sequence[str], without: Collection[int],
    only: Collection[int] | None, *, most: int, budget: int = BUDGET,
) -> Lane:  # fmt: skip
    """By words: BM25 of the phrase that fits a memory best, as a share of what the best memory has
    for that phrase."""
    asked = [list(dict.fromkeys(terms(phrase))) for phrase in phrases]
    wanted = list(dict.fromkeys(term for one in asked for term in one))
    if not wanted:
        return {}
    read, common = await postings.lists(tx, user_id, Source.MEMORIES, wanted, budget=budget)
    lists = [_posting_list(one) for one in read]
    weights = {one.term: float(idf(whole.documents, one.documents)) for one in lists}
    if common and lists:
        first = gather(lists)
        partial = score(first.tf, first.lengths, whole.average, [weights[o.term] for o in lists])
        best = first.docs[np.argsort(-partial, kind="stable")[:WEIGHED]]
        lists = [_among(one, best) for one in lists]
        more = await postings.among(tx, user_id, Source.MEMORIES, common, best.tolist())
        weights |= {one.term: float(idf(whole.documents, one.documents)) for one in more}
        lists += [_posting_list(one) for one in more]
    gathered = gather(lists)
    docs = gathered.docs
    allowed = np.ones(len(docs), bool)
    if without:
        allowed &= ~np.isin(docs, list(without))
    if only is not None:
        allowed &= np.isin(docs, list(only))
    result = np.zeros(len(docs))
    for one in asked:
        of_phrase = [weights[each.term] if each.term in one else 0.0 for each in lists]
        scores = np.where(
            allowed, score(gathered.tf, gathered.lengths, whole.average, of_phrase), 0.0
        )
        if len(scores) and scores.max() > 0:
            result = np.maximum(result, scores / scores.max() if len(asked) > 1 else scores)
    order = np.argsort(-result, kind="stable")[:most]
    return {int(docs[at]): float(result[at]) for at in order if result[at] > 0}


async def entity(
    tx: Tx, user_id: UUID, whole: Corpus, names: Sequence[str], phrases: Sequence[str],
    without: Collection[int], only: Collection[int] | None,
) -> Lane:  # fmt: skip
    """By whom or what they are about: the rarer a name, the more it says."""
    most = float(idf(whole.documents, 1)) or 1.0
    lane: dict[int, float] = {}
    for one in await _meant(tx, user_id, names, phrases):
        rarity = float(idf(whole.documents, one.memories)) / most
        for doc in one.docs:
            if doc not in without and (only is None or doc in only):
                lane[doc] = lane.get(doc, 0.0) + rarity
    return lane


async def _meant(
    tx: Tx, user_id: UUID, names: Sequence[str], phrases: Sequence[str]
) -> list[About]:
    """The entities that are meant: by their very name, or else by one very like it."""
    keys = [key for name in names if (key := normalise(name))]
    wanted = keys or _names_in(phrases)
    if not wanted:
        return []
    found = await memory_search.about_named(
        tx, user_id, wanted, most=ENTITIES, newest=NEWEST, each=OF_EACH
    )
    missing = set(keys) - {key for one in found for key in one.keys}
    if not missing:
        return found
    like = await _like(tx, user_id, [key for key in keys if key in missing])
    more = [one for one in like if one not in {each.id for each in found}]
    return found + await memory_search.about(
        tx, user_id, more[: ENTITIES - len(found)], newest=NEWEST, each=OF_EACH
    )


async def _like(tx: Tx, user_id: UUID, keys: Sequence[str]) -> list[UUID]:
    """The entities whose names are very like these, merges followed."""
    known = await entities.known(tx, user_id)
    choices = [key for _, key, _ in known]
    found = [
        known[at][0]
        for key in keys
        for _, _, at in process.extract(
            key, choices, scorer=fuzz.ratio, score_cutoff=LIKENESS, limit=ENTITIES
        )
    ]
    return list(dict.fromkeys(await entities.follow(tx, user_id, found)))


def _names_in(phrases: Sequence[str]) -> list[str]:
    """Everything in the phrases that could be a name: up to four words running."""
    found: dict[str, None] = {}
    for phrase in phrases:
        said = list(words(phrase))[:200]
        for length in range(LONGEST_NAME, 0, -1):
            for at in range(len(said) - length + 1):
                part = said[at : at + length]
                if length > 1 or part[0] not in STOP_WORDS:
                    found[" ".join(part)] = None
    return list(found)


def _posting_list(one: TermDocuments) -> PostingList:
    return PostingList(
        one.term, one.documents, np.asarray(one.docs, np.int64), np.asarray(one.tf, np.int64),
        np.asarray(one.lengths, np.int64),
    )  # fmt: skip


def _among(one: PostingList, docs: Ints) -> PostingList:
    kept = np.isin(one.docs, docs)
    return one._replace(docs=one.docs[kept], tf=one.tf[kept], lengths=one.lengths[kept])
