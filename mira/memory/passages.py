"""The search over the history: what was said, found by words, by meaning and by what is around it.

A search takes three steps: a bounded pool of candidates from the index (a few hundred, however long
the history), their features, and one score made of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from uuid import UUID

import anyio
import msgspec
import numpy as np

from mira.errors import MiraError, Unavailable, ValidationFailed
from mira.memory import passage_pool, passage_ranking
from mira.memory.asked import Asked, read
from mira.memory.bm25 import Floats
from mira.memory.encoding import Encoders
from mira.memory.passage_features import Featured, Matrix, featured
from mira.memory.passage_pool import Pool
from mira.memory.passage_ranking import LANE_WEIGHTS, RERANKED, Weights
from mira.memory.query import LONGEST_PHRASE, RecallQuery
from mira.memory.terms import clean, terms
from mira.messages.content import Role
from mira.store import search_opening
from mira.store.database import Database
from mira.store.passage_search import Rows
from mira.store.passages import Names

#: How many candidates are ranked.
POOL = 150


class PassageHit(msgspec.Struct, frozen=True, kw_only=True):
    """A message that was found."""

    doc: int
    message_id: UUID
    segment_id: UUID | None
    turn_seq: int
    role: Role
    said_at: datetime
    #: What it is ranked by: 1 for the best, towards 0.
    relevance: float
    #: What that is made of: the sum of the contributions; of fused lanes if there are none.
    score: float
    #: What each feature added, the most decisive first.
    contributions: dict[str, float]
    #: What each lane that found it said: rank (from 1, among the candidates) and score.
    lanes: dict[str, tuple[int, float]]
    #: Which of the phrases it answers best.
    phrase: int


class PassageRanking(msgspec.Struct, frozen=True, kw_only=True):
    """What a search found, best first."""

    hits: tuple[PassageHit, ...]
    #: How the lanes by meaning went: exact, by signs first, or why they were left out.
    dense: str
    #: How many candidates were looked at.
    candidates: int


class _Encoded:
    """The vectors of the phrases, if there are any; why not, if there are none."""

    def __init__(self) -> None:
        self.vectors: Matrix | None = None
        self.dense = "no vectors yet"


class PassageSearch:
    """Searches the history of any user. Safe to use from many tasks at once."""

    def __init__(
        self, database: Database, encoders: Encoders, weights: Weights | None = None, *,
        rerank: bool = True,
    ) -> None:  # fmt: skip
        """`weights`: others than those that ship; without `rerank` the fused lanes alone rank."""
        self._database = database
        self._encoders = encoders
        self._weights = weights or passage_ranking.fitted()
        self._rerank = rerank

    async def search(
        self, user_id: UUID, query: RecallQuery, *, limit: int | None = None
    ) -> PassageRanking:
        """At most `limit` messages (default: the query's), best first; equals newest first.

        Of several phrases each is searched, and a message is as good as for the one it answers
        best. While there is no encoder, or nothing is encoded yet, words alone decide, and `dense`
        says so. Raises ValidationFailed if nothing is asked.
        """
        pool = await self.pool(user_id, query)
        most = query.limit if limit is None else limit
        return self._ranked(pool, query, most)

    async def pool(self, user_id: UUID, query: RecallQuery) -> Pool:
        """The candidates of a search, before they are ranked."""
        phrases = _phrases(query)
        encoded = _Encoded()
        failed: MiraError | None = None
        async with anyio.create_task_group() as group:
            try:
                async with self._database.user(user_id, planned_once=True) as tx:
                    opening = await search_opening.of_passages(tx, user_id, list(query.exclude))
                    asked = _asked(phrases, query, opening.names)
                    # Meanwhile words are looked for; no transaction waits for a model.
                    if opening.spaces is not None:
                        group.start_soon(self._encode, opening.spaces.active.model, asked, encoded)
                    begun = await passage_pool.begin(tx, user_id, opening, asked)
            except MiraError as error:
                failed = error
        if failed is not None:
            raise failed
        async with self._database.user(user_id, planned_once=True) as tx:
            return await passage_pool.read_pool(
                tx, user_id, query, begun, encoded.vectors, encoded.dense
            )

    async def _encode(self, model: str, asked: Sequence[Asked], encoded: _Encoded) -> None:
        encoded.dense = "no encoder"
        encoder = self._encoders.of(model)
        if encoder is not None:
            # Words alone find most things; better than nothing.
            with suppress(Unavailable):
                encoded.vectors = await encoder.queries([one.content for one in asked])

    def _ranked(self, pool: Pool, query: RecallQuery, limit: int) -> PassageRanking:
        count = len(pool.rows.doc)
        weights = self._chosen(pool, query)
        found: list[Featured] = []
        relevances: list[Floats] = []
        scores: list[Floats] = []
        for at, one in enumerate(pool.asked):
            vector = None if pool.vectors is None else pool.vectors[at]
            phrase = featured(one, vector, pool.facts, LANE_WEIGHTS[query.intent], POOL)
            score = phrase.fused if weights is None else passage_ranking.scores(phrase, weights)
            spread = np.zeros(count)
            spread[phrase.at] = passage_ranking.relevance(score)
            found.append(phrase)
            scores.append(score)
            relevances.append(spread)
        best, of = passage_ranking.best_of(relevances)
        # Newer first among equals: rows rise with time.
        order = [int(n) for n in np.lexsort((-np.arange(count), -best)) if best[n] > 0][:limit]
        hits = []
        for n in order:
            phrase_at = int(of[n])
            at = int(np.argmax(found[phrase_at].at == n))
            hits.append(
                _hit(pool.rows, n, found[phrase_at], scores[phrase_at], at, float(best[n]),
                     phrase_at, weights)
            )  # fmt: skip
        return PassageRanking(
            hits=tuple(hits), dense=pool.dense, candidates=int(pool.facts.candidate.sum())
        )

    def _chosen(self, pool: Pool, query: RecallQuery) -> Mapping[str, float] | None:
        if not self._rerank or query.intent not in RERANKED:
            return None
        return self._weights.words_alone if pool.vectors is None else self._weights.with_meaning


def _hit(
    rows: Rows, n: int, found: Featured, scores: Floats, at: int, relevance: float, phrase: int,
    weights: Mapping[str, float] | None,
) -> PassageHit:  # fmt: skip
    lanes = {
        name: (int((lane > lane[at]).sum()) + 1, float(lane[at]))
        for name, lane in found.lanes.items()
        if np.isfinite(lane[at])
    }
    return PassageHit(
        doc=int(rows.doc[n]), message_id=rows.message_id[n], segment_id=rows.segment_id[n],
        turn_seq=rows.turn_seq[n], role=Role.USER if rows.by_user[n] else Role.ASSISTANT,
        said_at=rows.said_at[n], relevance=relevance, score=float(scores[at]),
        contributions={} if weights is None else passage_ranking.contributions(found, at, weights),
        lanes=lanes, phrase=phrase,
    )  # fmt: skip


def _phrases(query: RecallQuery) -> list[str]:
    kept = query.kept_phrases()
    if not kept:
        kept = [" ".join(clean(name).strip() for name in query.entities).strip()[:LONGEST_PHRASE]]
    if not kept[0]:
        raise ValidationFailed("Nothing is looked for.", (("q", "empty"),))
    return kept


def _asked(phrases: Sequence[str], query: RecallQuery, names: Names) -> list[Asked]:
    asked = [read(phrase, names.user, names.assistant) for phrase in phrases]
    asked[0] = _with_entities(asked[0], query.entities)
    return asked


def _with_entities(asked: Asked, entities: Sequence[str]) -> Asked:
    """The topic, with the words of the names that it is about."""
    more = [term for name in entities for term in terms(name)]
    return msgspec.structs.replace(asked, terms=tuple(dict.fromkeys((*asked.terms, *more))))
