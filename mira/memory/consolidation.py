"""Memories that say nearly the same, to be merged: proposed by one answer, approved by another.

The second question shows the originals and the new text to a model that has not proposed it. What
it does not approve in so many words is refused; so is a text with a number that no original has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime

import msgspec

from mira.memory.answers import many, objects, read, whole_number, words, yes
from mira.memory.forms import NUMBER, TEXT, YES_OR_NO, list_of, object_of
from mira.memory.links_review import Shown
from mira.memory.quoting import quoted

#: Likeness (cosine) from which memories are put to the question together; members of a set; sets
#: in one question; refusals after which a set is left alone.
LIKENESS, MOST_MEMBERS, MOST_SETS, MOST_REFUSALS = 0.85, 8, 6, 3
SHORTEST, LONGEST = 10, 800

_NUMBER = re.compile(r"\d+")


class AlikeSet(msgspec.Struct, frozen=True):
    """Memories that may be one."""

    members: tuple[Shown, ...]


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """`members` (at least two) are to become one memory that says `text`. `set` counts from 0."""

    set: int
    members: tuple[Shown, ...]
    text: str


class ShownSet(msgspec.Struct, frozen=True, kw_only=True):
    """A numbered set, or a proposal with its new text, as the templates show it."""

    number: int
    members: tuple[Shown, ...]
    text: str = ""


def may_be_one(one: datetime | None, other: datetime | None) -> bool:
    """Whether memories of what happens at these times could be the same: not at two times."""
    return one == other or one is None or other is None


def shown_sets(sets: Sequence[AlikeSet]) -> tuple[ShownSet, ...]:
    return tuple(
        ShownSet(number=n, members=tuple(m.quoted() for m in one.members))
        for n, one in enumerate(sets, 1)
    )


def shown_proposals(proposals: Sequence[Proposal]) -> tuple[ShownSet, ...]:
    return tuple(
        ShownSet(number=n, members=tuple(m.quoted() for m in p.members), text=quoted(p.text))
        for n, p in enumerate(proposals, 1)
    )


def parse_proposals(text: str, sets: Sequence[AlikeSet]) -> tuple[Proposal, ...]:
    """Read a model's proposals; those that break a rule are left out.

    Raises ProviderMalformed if nothing can be made of the answer.
    """
    answer = read(text)
    found: list[Proposal] = []
    taken: set[str] = set()
    for item in objects(answer.value, "merges", "members"):
        number = whole_number(item.get("set"))
        if number is None and len(sets) == 1:
            number = 1
        if number is None or not 1 <= number <= len(sets):
            continue
        wanted = {one.strip().lower() for one in many(item.get("members")) if isinstance(one, str)}
        members = tuple(m for m in sets[number - 1].members if m.short_id in wanted)
        merged = words(item.get("text"), most=LONGEST + 50)
        if (
            len(members) < 2
            or taken & {m.short_id for m in members}
            or not SHORTEST <= len(merged) <= LONGEST
            or not _adds_no_number(merged, members)
        ):
            continue
        taken |= {m.short_id for m in members}
        found.append(Proposal(set=number - 1, members=members, text=merged))
    return tuple(found)


def _adds_no_number(text: str, members: Sequence[Shown]) -> bool:
    known = {n for member in members for n in _NUMBER.findall(member.text)}
    return set(_NUMBER.findall(text)) <= known


def parse_verdicts(text: str, proposals: Sequence[Proposal]) -> tuple[bool, ...]:
    """For each proposal whether it was approved. Raises as `parse_proposals` does."""
    answer = read(text)
    verdicts = [False] * len(proposals)
    seen: set[int] = set()
    for item in objects(answer.value, "verdicts", "approve"):
        number = whole_number(item.get("merge"))
        if number is None and len(proposals) == 1:
            number = 1
        if number is None or not 1 <= number <= len(proposals):
            continue
        # Said twice in two ways is not said.
        verdicts[number - 1] = yes(item.get("approve")) and number not in seen
        seen.add(number)
    return tuple(verdicts)


PROPOSALS = json.dumps(
    object_of(merges=list_of(object_of(set=NUMBER, members=list_of(TEXT), text=TEXT)))
)
VERDICTS = json.dumps(
    object_of(verdicts=list_of(object_of(merge=NUMBER, approve=YES_OR_NO, reason=TEXT)))
)
