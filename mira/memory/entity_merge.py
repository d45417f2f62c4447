"""Entities that may be one under several spellings: found by their names, decided by a model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from uuid import UUID

import msgspec
from rapidfuzz import fuzz, process

from mira.memory.answers import many, objects, read, whole_number
from mira.memory.clusters import clusters
from mira.memory.forms import NUMBER, list_of, object_of
from mira.memory.quoting import quoted

#: Likeness of names from which they are put to the question together: of their letters (0 to 1),
#: or of their meaning (cosine).
LETTERS, MEANING = 0.85, 0.85
#: Entities of a group, groups in one question, entities compared with each other of one type.
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
    candidates: Sequence[Candidate], meaning: Mapping[tuple[UUID, UUID], float] | None = None
) -> list[tuple[Candidate, ...]]:
    """Groups of entities of one type whose names are alike, the most used first.

    `meaning` may add likeness of other kinds, by pairs of ids. Of each type the most used are
    compared.
    """
    by_id = {one.id: one for one in candidates}
    edges: list[tuple[UUID, UUID, float]] = []
    for kind in sorted({one.type for one in candidates}):
        same = sorted((c for c in candidates if c.type == kind), key=lambda c: (-c.memories, c.key))
        edges += _alike(same[:MOST_COMPARED])
    for (one_id, other_id), likeness in (meaning or {}).items():
        if likeness >= MEANING and by_id[one_id].type == by_id[other_id].type:
            edges.append((one_id, other_id, likeness))
    found = [tuple(by_id[i] for i in members) for members in clusters(edges, most=MOST_MEMBERS)]
    return sorted(found, key=lambda group: (-sum(c.memories for c in group), group[0].key))


def _alike(same: Sequence[Candidate]) -> list[tuple[UUID, UUID, float]]:
    """Pairs whose names are alike: as a whole, or one being the other with a word left out."""
    keys = [one.key for one in same]
    likeness = process.cdist(keys, keys, scorer=fuzz.ratio, score_cutoff=LETTERS * 100)
    edges = [
        (same[i].id, same[j].id, float(likeness[i][j]) / 100)
        for i, j in zip(*likeness.nonzero(), strict=True)
        if i < j
    ]
    with_word: dict[str, list[Candidate]] = {}
    for one in same:
        for word in set(one.key.split()):
            with_word.setdefault(word, []).append(one)
    for word, bearers in with_word.items():
        if len(word) < 3 or len(bearers) > MOST_BEARERS:
            continue
        for place, one in enumerate(bearers):
            for other in bearers[place + 1 :]:
                few, more = sorted((set(one.key.split()), set(other.key.split())), key=len)
                if few < more:
                    edges.append((one.id, other.id, LETTERS))
    return edges


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
