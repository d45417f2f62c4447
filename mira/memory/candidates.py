"""What the lanes found of one or several users, ranked together, and the account of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec
import numpy as np

from mira.memory import lanes
from mira.memory.bm25 import Floats
from mira.memory.fusion import ranks
from mira.memory.query import RecallQuery
from mira.memory.ranking import Blend, Standing, rank
from mira.store.memory_search import SHARED, Candidate

LANES = ("dense", "lexical", "entity")
#: How many candidates a trace holds.
TRACED = 60


class Found(msgspec.Struct, kw_only=True):
    """What one user's memories gave."""

    owner: UUID
    lanes: dict[str, lanes.Lane]
    #: Those of the documents that are active memories.
    candidates: dict[int, Candidate]
    use_day: int
    #: How the dense lane went.
    dense: str


class Ranked(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate in its place."""

    owner: UUID
    candidate: Candidate
    score: float
    relevance: float
    #: What each lane that found it said: rank (from 1) and score.
    lanes: dict[str, tuple[int, float]]


def ranked(everything: Sequence[Found], query: RecallQuery, blend: Blend) -> list[Ranked]:
    """All candidates, best first."""
    pairs = [(one, doc) for one in everything for doc in one.candidates]
    scores: dict[str, Floats] = {
        name: np.array([one.lanes.get(name, {}).get(doc, np.nan) for one, doc in pairs], float)
        for name in LANES
    }
    rows = [one.candidates[doc] for one, doc in pairs]
    present = query.as_of is None
    standing = Standing(
        importance=np.array([row.score for row in rows], float),
        age=np.array(
            [one.use_day - row.use_day_created for (one, _), row in zip(pairs, rows, strict=True)],
            float,
        ),
        superseded=np.array([row.superseded and present for row in rows], float),
    )
    result = rank(scores, standing, query.intent, blend)
    places = {name: ranks(lane) for name, lane in scores.items()}
    return [
        Ranked(
            owner=pairs[at][0].owner,
            candidate=rows[at],
            score=float(result.score[at]),
            relevance=float(result.relevance[at]),
            lanes={
                name: (int(places[name][at]), float(lane[at]))
                for name, lane in scores.items()
                if lane[at] == lane[at]  # not NaN: the lane found it
            },
        )
        for at in result.order
    ]


def asked(
    query: RecallQuery, phrases: Sequence[str], everything: Sequence[Found]
) -> dict[str, Any]:
    """What was looked for and how the lanes went, for a trace."""
    return {
        "phrases": list(phrases), "entities": list(query.entities), "intent": query.intent,
        "limit": query.limit, "as_of": query.as_of, "excluded": len(query.exclude),
        "dense": everything[0].dense, "shared": len(everything) > 1,
        "found": {name: sum(len(o.lanes.get(name, {})) for o in everything) for name in LANES},
    }  # fmt: skip


def results(order: Sequence[Ranked], kept: int) -> list[dict[str, Any]]:
    """The best candidates and what became of them, for a trace."""
    return [
        {
            "id": one.candidate.id, "score": round(one.score, 4),
            "relevance": round(one.relevance, 4), "importance": round(one.candidate.score, 4),
            "superseded": one.candidate.superseded, "shared": one.owner == SHARED,
            "lanes": {name: [place, round(s, 4)] for name, (place, s) in one.lanes.items()},
            "kept": place < kept, "why": "" if place < kept else "ranked too low",
        }
        for place, one in enumerate(order[:TRACED])
    ]  # fmt: skip
