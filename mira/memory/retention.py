"""Which memories of the last turn stay in context, and how hard they press. Pure.

Everything that was surfaced last turn may stay. From RETAINED on there are more than can, and
whoever chooses is warned; where the context is full, urgently. What is chosen is cut to the most
important.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Protocol, TypeVar
from uuid import UUID

from mira.memory.surfacing import DEFAULT, RETAINED


class Pressure(StrEnum):
    """How crowded the context is."""

    NONE = "none"
    WARNING = "warning"
    CRITICAL = "critical"


class Weighed(Protocol):
    """A memory, as far as this needs to know one."""

    @property
    def id(self) -> UUID: ...

    @property
    def importance(self) -> float: ...


W = TypeVar("W", bound=Weighed)


def pressure(surfaced: int) -> Pressure:
    """How crowded a context with so many surfaced memories is."""
    if surfaced >= DEFAULT:
        return Pressure.CRITICAL
    return Pressure.WARNING if surfaced >= RETAINED else Pressure.NONE


def retained(surfaced: Sequence[W], chosen: Collection[UUID] | None) -> tuple[W, ...]:
    """Those of `surfaced` that stay: the chosen ones, or all if nobody could choose (None); of
    these the RETAINED most important, the most important first, equals in the order given."""
    staying = [one for one in surfaced if chosen is None or one.id in chosen]
    return tuple(sorted(staying, key=lambda one: -one.importance)[:RETAINED])
