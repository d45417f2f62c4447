"""What of a turn's haul is shown, as it is shown, and the traces of it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import sqrt
from uuid import UUID

from mira.actors.recall_searches import RELEVANCE, Candidate, Found
from mira.actors.recalled import LinkedText, ShownMemory, ShownPassage, Wanted
from mira.ids import Ids
from mira.memory.excerpt import excerpt
from mira.memory.model import LinkedMemory, Memory
from mira.memory.passages import PassageHit, PassageRanking
from mira.memory.surfacing import PASSAGES, Offer, Shown, Surfacing, surface
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
    def fresh(self) -> list[Candidate]:
        """Memories that were not there before, the best first."""
        return sorted((*self.memories.candidates, *self.like_replies), key=lambda one: -one.score)

    @property
    def known(self) -> dict[UUID, Candidate]:
        """Every memory, by how it was found first: what was there before stays what it was."""
        return {one.id: one for one in reversed((*self.retained, *self.fresh))}

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


def pick(
    haul: Haul,
    wanted: Wanted,
    beside: Mapping[UUID, Sequence[LinkedMemory]],
    without: Collection[UUID] = (),
) -> Surfacing:
    """What of a haul is shown, with which of the memories `beside` them. `without` are messages
    that cannot be.

    A passage ranks as a memory would of no importance and the root of its relevance, which falls
    steeply: half as good as the best is still good.
    """

    def offers(candidates: Iterable[Candidate]) -> list[Offer]:
        return [
            Offer(
                id=one.id, score=one.score,
                linked=tuple(linked.memory.id for linked in beside.get(one.id, ())),
            )
            for one in candidates
        ]  # fmt: skip

    return surface(
        offers(haul.fresh),
        [
            Offer(id=hit.message_id, score=_score(hit), kind="passage")
            for hit in haul.hits
            if hit.message_id not in without
        ],
        offers(haul.retained),
        held=wanted.held,
    )


def picked(haul: Haul, wanted: Wanted) -> list[Memory]:
    """The memories that will be shown."""
    known = haul.known
    return [known[one.id].memory for one in pick(haul, wanted, {}).shown if one.kind == "memory"]


def choose(
    haul: Haul, wanted: Wanted, texts: Mapping[UUID, str],
    beside: Mapping[UUID, Sequence[LinkedMemory]],
) -> Choice:  # fmt: skip
    """What is shown of a haul, as it is shown. `texts` are the words of messages: one without is
    not shown."""
    wordless = {one for one in wanted_texts(haul, wanted) if not texts.get(one)}
    result = pick(haul, wanted, beside, wordless)
    known, hits = haul.known, {hit.message_id: hit for hit in haul.hits}
    return Choice(
        memories=tuple(
            _memory(shown, known[shown.id], beside.get(shown.id, ()))
            for shown in result.shown
            if shown.kind == "memory"
        ),
        passages=tuple(
            _passage(hits[shown.id], texts[shown.id], haul.phrases)
            for shown in result.shown
            if shown.kind == "passage" and texts.get(shown.id)
        ),
        dropped=result.dropped,
    )


def _score(hit: PassageHit) -> float:
    return RELEVANCE * sqrt(hit.relevance)


def _memory(shown: Shown, one: Candidate, linked: Sequence[LinkedMemory]) -> ShownMemory:
    memory = one.memory
    beside = {each.memory.id: each for each in linked}
    return ShownMemory(
        id=memory.id, short_id=memory.short_id, text=memory.text, importance=memory.importance,
        created_at=memory.created_at, happens_at=memory.happens_at,
        superseded=memory.superseded_by is not None, found_by=one.found_by, score=one.score,
        linked=tuple(_linked(beside[other]) for other in shown.linked),
    )  # fmt: skip


def _linked(one: LinkedMemory) -> LinkedText:
    return LinkedText(
        id=one.memory.id, short_id=one.memory.short_id, text=one.memory.text, how=one.link.type,
        outward=one.direction == "out",
    )  # fmt: skip


def _passage(hit: PassageHit, text: str, phrases: Sequence[str]) -> ShownPassage:
    return ShownPassage(
        message_id=hit.message_id, turn_seq=hit.turn_seq, role=hit.role, said_at=hit.said_at,
        text=excerpt(text, phrases, most=PASSAGE), score=_score(hit),
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
