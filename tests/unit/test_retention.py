"""Which memories stay in context, and how hard they press."""

from __future__ import annotations

from uuid import UUID

import pytest

from mira.memory.retention import Pressure, pressure, retained
from mira.messages.subcortex import InContext


def memories(*importances: float) -> list[InContext]:
    return [
        InContext(id=UUID(int=n), short_id=f"mem_{n:08x}", importance=importance, text="")
        for n, importance in enumerate(importances, 1)
    ]


def numbers(kept: tuple[InContext, ...]) -> list[int]:
    return [one.id.int for one in kept]


@pytest.mark.parametrize(
    ("surfaced", "expected"),
    [
        (0, Pressure.NONE), (5, Pressure.NONE), (6, Pressure.WARNING), (7, Pressure.WARNING),
        (8, Pressure.CRITICAL), (20, Pressure.CRITICAL),
    ],
)  # fmt: skip
def test_from_six_memories_on_it_is_warned_and_from_eight_on_urgently(
    surfaced: int, expected: Pressure
) -> None:
    assert pressure(surfaced) is expected


def test_what_is_chosen_stays_and_the_rest_goes() -> None:
    assert numbers(retained(memories(0.1, 0.2, 0.3), [UUID(int=1), UUID(int=3)])) == [3, 1]


def test_of_more_than_six_that_are_chosen_the_six_most_important_stay() -> None:
    offered = memories(0.9, 0.1, 0.8, 0.2, 0.7, 0.6, 0.5, 0.4)
    everything = [one.id for one in offered]
    assert numbers(retained(offered, everything)) == [1, 3, 5, 6, 7, 8]


def test_if_nobody_could_choose_the_six_most_important_stay() -> None:
    assert numbers(retained(memories(0.9, 0.1, 0.8, 0.2, 0.7, 0.6, 0.5, 0.4), None)) == [
        1, 3, 5, 6, 7, 8,
    ]  # fmt: skip


def test_if_nothing_is_chosen_nothing_stays() -> None:
    assert retained(memories(0.9, 0.8), []) == ()
