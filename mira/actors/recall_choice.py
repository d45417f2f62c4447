"""What of a turn's haul is shown, as it is shown, and the traces of it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from mira.actors.recall_searches import RELEVANCE, Candidate, Found
from mira.actors.recalled import LinkedText, ShownMemory, ShownPassage, Wanted
from mira.ids import Ids
from mira.memory.model import LinkedMemory
from mira.memory.passages import PassageHit, PassageRanking
from mira.memory.surfacing import LINKED, PASSAGES, Offer, Shown, surface
from mira.store.traces import Trace

#: Characters of a passage that are shown.
PASSAGE = 600


@dataclass(frozen=True, kw_only=True)
class Haul:
    """Everything that the searches of a turn have found."""

    retained: tuple[Candidate, ...] = ()
    memories: Found = field(default_factory=Found)
    like_replies: tuple[Candidate, ...] = ()
    passages: PassageRanking | None = None
    #: What was looked for in the history.
    phrases: tuple[str, ...] = ()

    @property
    def hits(self) -> tuple[PassageHit, ...]:
        return self.passages.hits if self.passages is not None else ()


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What is shown, and what is not, with the reason."""

    memories: tuple[ShownMemory, ...]
    passages: tuple[ShownPassage, ...]
    dropped: tuple[tuple[UUID, str], ...]


def wanted_texts(haul: Haul, wanted: Wanted) -> tuple[UUID, ...]:
    """The messages whose words may be shown."""
    found = (hit.message_id for hit in haul.hits)
    return tuple(one for one in found if one not in wanted.held)[:PASSAGES]


def choose(haul: Haul, wanted: Wanted, texts: Mapping[UUID, str]) -> Choice:
    """What is shown of a haul. `texts` are the words of passages; one without words is not shown.

    A passage ranks as a memory of its relevance and no importance would.
    """
    fresh = sorted((*haul.memories.candidates, *haul.like_replies), key=lambda one: -one.score)
    result = surface(
        [one.offer for one in fresh],
        [
            Offer(id=hit.message_id, score=RELEVANCE * hit.relevance, kind="passage")
            for hit in haul.hits
            if texts.get(hit.message_id) or hit.message_id in wanted.held
        ],
        [one.offer for one in haul.retained],
        held=wanted.held,
    )
    known: dict[UUID, Candidate] = {}
    for one in (*haul.retained, *fresh):
        known.setdefault(one.id, one)
    hits = {hit.message_id: hit for hit in haul.hits}
    return Choice(
        memories=tuple(_memory(s, known[s.id]) for s in result.shown if s.kind == "memory"),
        passages=tuple(
            _passage(hits[s.id], texts[s.id]) for s in result.shown if s.kind == "passage"
        ),
        dropped=result.dropped,
    )


def _memory(shown: Shown, one: Candidate) -> ShownMemory:
    memory = one.memory
    beside = {linked.memory.id: linked for linked in one.linked}
    return ShownMemory(
        id=memory.id, short_id=memory.short_id, text=memory.text, importance=memory.importance,
        created_at=memory.created_at, happens_at=memory.happens_at,
        superseded=memory.superseded_by is not None, found_by=one.found_by, score=one.score,
        linked=tuple(_linked(beside[other]) for other in shown.linked[:LINKED]),
    )  # fmt: skip


def _linked(one: LinkedMemory) -> LinkedText:
    return LinkedText(
        id=one.memory.id, short_id=one.memory.short_id, text=one.memory.text, how=one.link.type,
        outward=one.direction == "out",
    )  # fmt: skip


def _passage(hit: PassageHit, text: str) -> ShownPassage:
    cut = text if len(text) <= PASSAGE else text[: PASSAGE - 1].rstrip() + "…"
    return ShownPassage(
        message_id=hit.message_id, turn_seq=hit.turn_seq, role=hit.role, said_at=hit.said_at,
        text=cut, score=RELEVANCE * hit.relevance,
    )  # fmt: skip


def with_linked(choice: Choice, among: Collection[UUID]) -> list[UUID]:
    """The memories of a choice that are `among` these, each with what is shown beside it."""
    return [
        one
        for memory in choice.memories
        if memory.id in among
        for one in (memory.id, *(linked.id for linked in memory.linked))
    ]


def further_traces(
    haul: Haul, choice: Choice, wanted: Wanted, ids: Ids, at: datetime
) -> list[Trace]:
    """The traces of what leaves none by itself: the history, the replies, and what stayed."""
    made: list[tuple[str, dict[str, object], list[dict[str, object]], list[UUID]]] = []
    shown = [one.id for one in choice.memories]
    if haul.passages is not None:
        said = [one.message_id for one in choice.passages]
        query: dict[str, object] = {
            "phrases": list(haul.phrases), "dense": haul.passages.dense,
        }  # fmt: skip
        results: list[dict[str, object]] = [
            {
                "id": hit.message_id, "score": round(hit.score, 4),
                "relevance": round(hit.relevance, 4), "kept": hit.message_id in said,
                "lanes": {name: [place, round(s, 4)] for name, (place, s) in hit.lanes.items()},
            }
            for hit in haul.hits
        ]  # fmt: skip
        made.append(("history", query, results, said))
    if haul.like_replies:
        results = [_result(one, shown) for one in haul.like_replies]
        alike = with_linked(choice, {one.id for one in haul.like_replies})
        made.append(("replies", {"replies": list(wanted.replies)}, results, alike))
    if haul.retained:
        results = [_result(one, shown) for one in haul.retained]
        stayed = with_linked(choice, {one.id for one in haul.retained})
        made.append(("retained", {"surfaced": len(wanted.surfaced)}, results, stayed))
    return [
        Trace(
            id=ids.new(), turn_id=wanted.turn_id, purpose=purpose, at=at, query=query,
            results=results, surfaced=tuple(surfaced),
        )
        for purpose, query, results, surfaced in made
    ]  # fmt: skip


def _result(one: Candidate, shown: list[UUID]) -> dict[str, object]:
    return {"id": one.id, "score": round(one.score, 4), "kept": one.id in shown}
