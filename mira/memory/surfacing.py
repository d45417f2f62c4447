"""What of all that was found is shown to the model in a turn. Pure.

at most 8 (a setting, never more than 20), of which
  at most 6 retained from earlier turns, and at least 2 fresh, if there are,
  at most 3 passages of the history;
at most 2 linked memories beside each memory, and with them 20 in all.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal
from uuid import UUID

import msgspec

CAP = 20
DEFAULT = 8
RETAINED = 6
FRESH = 2
PASSAGES = 3
LINKED = 2


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was found and could be shown. Scores of all offers are comparable, 0…1."""

    id: UUID
    score: float
    kind: Literal["memory", "passage"] = "memory"
    #: Memories that belong to it, the most important first.
    linked: tuple[UUID, ...] = ()


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is shown, with what is shown beside it."""

    id: UUID
    kind: Literal["memory", "passage"]
    retained: bool
    linked: tuple[UUID, ...] = ()


class Surfacing(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown, retained ones first, and why the rest is not."""

    shown: tuple[Shown, ...]
    dropped: tuple[tuple[UUID, str], ...]


def surface(
    memories: Sequence[Offer],
    passages: Sequence[Offer],
    retained: Sequence[Offer],
    *,
    limit: int = DEFAULT,
    held: Collection[UUID] = (),
) -> Surfacing:
    """Choose. Each sequence is best first; `retained` are memories of earlier turns that still
    matter, and one that is found again stays retained. `held` is what the prompt holds already."""
    room = max(0, min(limit, CAP))
    dropped: list[tuple[UUID, str]] = []
    kept = _unheld(retained, held, dropped)
    staying = {one.id for one in kept}
    found = [one for one in _unheld(memories, held, dropped) if one.id not in staying]
    told = [one for one in _unheld(passages, held, dropped) if one.id not in staying]
    dropped += [(one.id, "enough passages") for one in told[PASSAGES:]]
    fresh = sorted([*found, *told[:PASSAGES]], key=lambda one: -one.score)

    reserved = min(FRESH, len(fresh), room)
    old = kept[: min(RETAINED, room - reserved)]
    new = fresh[: room - len(old)]
    dropped += [(one.id, "retained no longer") for one in kept[len(old) :]]
    dropped += [(one.id, "ranked too low") for one in fresh[len(new) :]]
    return Surfacing(shown=tuple(_with_linked(old, new, held)), dropped=tuple(dropped))


def _with_linked(old: list[Offer], new: list[Offer], held: Collection[UUID]) -> list[Shown]:
    beside = CAP - len(old) - len(new)
    seen = {one.id for one in (*old, *new)} | set(held)
    shown = []
    for at, one in enumerate((*old, *new)):
        linked: list[UUID] = []
        for other in one.linked:
            if other not in seen and len(linked) < LINKED and beside > 0:
                linked.append(other)
                seen.add(other)
                beside -= 1
        shown.append(Shown(id=one.id, kind=one.kind, retained=at < len(old), linked=tuple(linked)))
    return shown


def _unheld(
    offers: Sequence[Offer], held: Collection[UUID], dropped: list[tuple[UUID, str]]
) -> list[Offer]:
    """Each once, without what the prompt holds already."""
    unique: dict[UUID, Offer] = {}
    for one in offers:
        if one.id in held:
            dropped.append((one.id, "in the prompt already"))
        else:
            unique.setdefault(one.id, one)
    return list(unique.values())
