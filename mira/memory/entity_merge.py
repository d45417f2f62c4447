"""Entities that may be one under several spellings: found by their names, decided by a model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from uuid import UUID

import msgspec

from mira.memory.answers import many, objects, read, whole_number
from mira.memory.clusters import clusters
from mira.memory.entities import ALIKE, Named, likeness, merge_proposals
from mira.memory.forms import NUMBER, list_of, object_of
from mira.memory.quoting import quoted

#: Likeness (cosine) of what names mean, from which they are put to the question together.
MEANING = 0.85
#: Entities of a group, groups in one question, entities of one type that are compared.
MOST_MEMBERS, MOST_GROUPS, MOST_COMPARED = 8, 12, 2_000
#: Names with a word that more than so many share are not compared by it.
MOST_BEARERS = 30


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """An entity: `key` is its name as it is compared, `memories` how many it has."""

    id: UUID
    name: str
    key: str
    type: str
    memories: int
    #: One of its memories, so that its namesakes can be told apart.
    example: str = ""


class ShownEntity(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    name: str
    memories: int
    example: str


class ShownGroup(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    type: str
    entities: tuple[ShownEntity, ...]


class FoundMerge(msgspec.Struct, frozen=True):
    """`others` are `into` under other names; all of one type."""

    into: UUID
    others: tuple[UUID, ...]


def groups(
    candidates: Sequence[Candidate], meaning: Iterable[tuple[UUID, UUID]] = ()
) -> list[tuple[Candidate, ...]]:
    """Groups of entities of one type whose names are alike, the most used first.

    Alike are names of like letters, names of which one is the other with words left out, and the
    pairs in `meaning`. Of each type the most used are compared: takes a second or two for
    thousands, so not on the event loop.
    """
    by_type: dict[str, list[Candidate]] = {}
    for one in sorted(candidates, key=lambda c: (-c.memories, c.key)):
        by_type.setdefault(one.type, []).append(one)
    compared = [c for same in by_type.values() for c in same[:MOST_COMPARED]]
    by_id = {one.id: one for one in compared}
    pairs = [pair for same in by_type.values() for pair in _with_words_left_out(same)]
    pairs += meaning
    found: list[tuple[Candidate, ...]] = []
    for members in merge_proposals([Named(c.id, c.name, c.type) for c in compared], alike=pairs):
        if len(members) > MOST_MEMBERS:
            within = clusters(_edges([by_id[m] for m in members], pairs), most=MOST_MEMBERS)
        else:
            within = [members]
        found += [tuple(by_id[m] for m in few) for few in within]
    return sorted(found, key=lambda group: (-sum(c.memories for c in group), group[0].key))


def _with_words_left_out(same: Sequence[Candidate]) -> Iterator[tuple[UUID, UUID]]:
    """Pairs of names of one type, of which one has some of the other's words and no others."""
    words = {one.id: frozenset(one.key.split()) for one in same}
    bearers: dict[str, list[Candidate]] = {}
    for one in same:
        for word in words[one.id]:
            bearers.setdefault(word, []).append(one)
    for word, some in bearers.items():
        if len(word) < 3 or len(some) > MOST_BEARERS:
            continue
        for one, other in combinations(some, 2):
            if words[one.id] < words[other.id] or words[other.id] < words[one.id]:
                yield one.id, other.id


def _edges(
    members: Sequence[Candidate], pairs: Sequence[tuple[UUID, UUID]]
) -> list[tuple[UUID, UUID, float]]:
    """What holds a large group together, and how strongly."""
    alike = [
        (one.id, other.id, likeness(one.key, other.key)) for one, other in combinations(members, 2)
    ]
    ids = {one.id for one in members}
    return [edge for edge in alike if edge[2] >= ALIKE] + [
        (one, other, ALIKE) for one, other in pairs if one in ids and other in ids
    ]


def shown(found: Sequence[Sequence[Candidate]]) -> tuple[ShownGroup, ...]:
    """Groups for the template."""
    return tuple(
        ShownGroup(
            number=n,
            type=group[0].type,
            entities=tuple(
                ShownEntity(
                    number=m,
                    name=quoted(one.name),
                    memories=one.memories,
                    example=quoted(" ".join(one.example.split())[:160]),
                )
                for m, one in enumerate(group, 1)
            ),
        )
        for n, group in enumerate(found, 1)
    )


def parse(text: str, found: Sequence[Sequence[Candidate]]) -> tuple[FoundMerge, ...]:
    """Read a model's answer; each entity is in one merge at most.

    Raises ProviderMalformed if nothing can be made of the answer.
    """
    answer = read(text)
    merges: list[FoundMerge] = []
    taken: set[UUID] = set()
    for item in objects(answer.value, "merges", "into"):
        number = whole_number(item.get("group"))
        if number is None and len(found) == 1:
            number = 1
        if number is None or not 1 <= number <= len(found):
            continue
        group = found[number - 1]
        places = [whole_number(one) for one in (item.get("into"), *many(item.get("others")))]
        members = [group[p - 1].id for p in places if p is not None and 1 <= p <= len(group)]
        if places[0] is None or not members or members[0] != _at(group, places[0]):
            continue
        into, others = members[0], tuple(dict.fromkeys(m for m in members[1:] if m != members[0]))
        if others and not taken & {into, *others}:
            taken |= {into, *others}
            merges.append(FoundMerge(into, others))
    return tuple(merges)


def _at(group: Sequence[Candidate], place: int) -> UUID | None:
    return group[place - 1].id if 1 <= place <= len(group) else None


SCHEMA = json.dumps(
    object_of(merges=list_of(object_of(group=NUMBER, into=NUMBER, others=list_of(NUMBER))))
)
