"""From memory to memory over links: both directions, a few steps, the strongest ways first."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from mira.memory.model import LinkedMemory, Memory
from mira.store import memories, memory_links
from mira.store.database import Tx
from mira.store.memory_events import Link, LinkType

#: How strongly a link of a type leads on.
LINK_WEIGHTS: Mapping[LinkType, float] = {
    "conflicts": 1.0, "supersedes": 0.9, "corroborates": 0.9, "refines": 0.8, "causes": 0.8,
    "exemplifies": 0.75, "precedes": 0.7, "contextualizes": 0.7, "other": 0.5,
    "shares_entity": 0.4,
}  # fmt: skip
DEEPEST = 3
#: How many memories of one level are followed further.
_FOLLOWED = 64


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """How a memory is reached from the one that was begun at."""

    start: UUID
    at: UUID
    link: Link
    direction: Literal["out", "in"]
    depth: int
    weight: float


async def ways(
    tx: Tx, user_id: UUID, starts: Sequence[UUID], *, depth: int = 1
) -> dict[UUID, list[Way]]:
    """For each of `starts`, the memories within `depth` (at most 3) links, the strongest way to
    each, strongest first. A way weighs the product of its links' weights and confidences."""
    best: dict[UUID, dict[UUID, Way]] = {start: {} for start in starts}
    #: What a level begins from: where it stands, for whom, how strong the way there is.
    level: dict[UUID, dict[UUID, float]] = {start: {start: 1.0} for start in starts}
    for step in range(1, min(depth, DEEPEST) + 1):
        if not level:
            break
        edges = await memory_links.touching(tx, user_id, list(level))
        following: dict[UUID, dict[UUID, float]] = {}
        for way in _onward(level, edges, step):
            known = best[way.start].get(way.at)
            if way.at != way.start and (known is None or known.weight < way.weight):
                best[way.start][way.at] = way
                following.setdefault(way.at, {})[way.start] = way.weight
        strongest = sorted(following, key=lambda at: -max(following[at].values()))
        level = {at: following[at] for at in strongest[:_FOLLOWED]}
    return {
        start: sorted(found.values(), key=lambda w: (-w.weight, w.depth, w.at))
        for start, found in best.items()
    }


async def around(tx: Tx, user_id: UUID, start: UUID, *, depth: int = 1) -> list[Way]:
    """Every link of one memory, and the strongest way to each other one within `depth`; the
    strongest first."""
    edges = await memory_links.touching(tx, user_id, [start])
    direct = _onward({start: {start: 1.0}}, edges, 1)
    known = {way.at for way in direct}
    further = (await ways(tx, user_id, [start], depth=depth))[start] if depth > 1 else []
    found = direct + [way for way in further if way.at not in known]
    return sorted(found, key=lambda w: (-w.weight, w.depth, w.at))


def _onward(
    level: Mapping[UUID, Mapping[UUID, float]], edges: Sequence[Link], depth: int
) -> list[Way]:
    found = []
    for link in edges:
        ends: tuple[tuple[UUID, UUID, Literal["out", "in"]], ...] = (
            (link.from_id, link.to_id, "out"), (link.to_id, link.from_id, "in"),
        )  # fmt: skip
        for near, far, direction in ends:
            for start, so_far in level.get(near, {}).items():
                weight = so_far * LINK_WEIGHTS[link.type] * link.confidence
                found.append(
                    Way(start=start, at=far, link=link, direction=direction, depth=depth,
                        weight=weight)
                )  # fmt: skip
    return found


async def standing(tx: Tx, user_id: UUID, ids: Collection[UUID]) -> dict[UUID, UUID]:
    """For each memory that was superseded, the latest active one that stands in its place."""
    later = await memories.successors_of(tx, user_id, list(ids))
    found = await memories.find(tx, user_id, [one for chain in later.values() for one in chain])
    result: dict[UUID, UUID] = {}
    for memory_id, chain in later.items():
        active = [one for one in chain if one in found and found[one].status == "active"]
        if active:
            result[memory_id] = active[-1]
    return result


def reached(way: Way, memory: Memory) -> LinkedMemory:
    """A memory at the end of a way."""
    return LinkedMemory(
        memory=memory, link=way.link, direction=way.direction, depth=way.depth, weight=way.weight
    )


def successor(old: Memory, now: Memory) -> LinkedMemory:
    """What stands in the place of a superseded memory, whether or not an edge says so."""
    link = Link(
        from_id=now.id, to_id=old.id, type="supersedes", reason="", confidence=1.0,
        created_at=old.valid_to or old.updated_at,
    )  # fmt: skip
    return LinkedMemory(memory=now, link=link, direction="in", depth=1, weight=1.0)


async def belonging(
    tx: Tx, user_id: UUID, hits: Mapping[UUID, bool], *, limit: int,
    without: frozenset[UUID] = frozenset(), as_of: datetime | None = None,
    depth: int = DEEPEST,
) -> tuple[dict[UUID, Memory], dict[UUID, list[LinkedMemory]]]:  # fmt: skip
    """Memories, read with what belongs to them: `hits` says of each whether it was superseded.

    What belongs to one are at most `limit` others that are not among `hits`: of a superseded one
    first what stands in its place (unless an earlier date counts), then those linked most
    strongly. With `as_of`, only what was true then.
    """
    found = await ways(tx, user_id, list(hits), depth=depth) if limit else {}
    closed = [one for one, superseded in hits.items() if superseded and as_of is None and limit]
    instead = await standing(tx, user_id, closed) if closed else {}
    passed_over = hits.keys() | without
    nearest = {
        one: [way for way in ways if way.at not in passed_over][: 4 * limit]
        for one, ways in found.items()
    }
    wanted = {way.at for ways in nearest.values() for way in ways} | set(instead.values())
    rows = await memories.find(tx, user_id, [*hits, *(wanted - hits.keys())])
    result: dict[UUID, list[LinkedMemory]] = {}
    for one in hits.keys() & rows.keys():
        brought: list[LinkedMemory] = []
        first = instead.get(one)
        if first is not None and first in rows:
            brought.append(successor(rows[one], rows[first]))
        for way in nearest.get(one, ()):
            memory = rows.get(way.at)
            if memory is None or memory.id == first or len(brought) >= limit:
                continue
            if memory.status == "active" and _true_at(memory, as_of):
                brought.append(reached(way, memory))
        result[one] = brought
    return {one: rows[one] for one in hits if one in rows}, result


def _true_at(memory: Memory, at: datetime | None) -> bool:
    if at is None:
        return True
    return memory.valid_from <= at and (memory.valid_to is None or memory.valid_to > at)
