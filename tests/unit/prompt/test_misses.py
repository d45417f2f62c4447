"""When a prompt cannot extend the one before it, it is known why."""

from __future__ import annotations

from typing import Any

import pytest

from mira.prompt.misses import misses
from tests.support.prompt import NOW, composer, inputs, memory, row, summary, turn

FIRST, SECOND, THIRD = (turn(f"Question {n}.", f"Answer {n}.") for n in (1, 2, 3))
BEFORE: dict[str, Any] = {
    "turns": (FIRST, SECOND),
    "continuity": (turn("Old.", "Old answer."),),
    "boundary_end": NOW,
    "manifest": (row(1),),
}


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({"turns": (FIRST, SECOND, THIRD)}, ()),
        ({"memories": (memory("Tea."),), "outcome": "It is done."}, ()),
        ({"directives": "Be brief."}, ("BehavioralDirectives",)),
        ({"portrait": "Ada codes."}, ("UserPortrait",)),
        ({"manifest": (row(1), row(0))}, ("Manifest",)),
        ({"earlier": (summary(1),), "continuity": ()}, ("EarlierSegments",)),
        ({"continuity": ()}, ("continuity",)),
        ({"turns": (SECOND, THIRD)}, ("turns",)),
        ({"turns": (SECOND, THIRD), "brief": "I answered."}, ("ContinuationBrief",)),
        ({"user": "Bob", "timezone": "UTC"}, ("BasePrompt", "Manifest", "Boundary")),
    ],
)
def test_what_broke_the_prefix_is_named(changed: dict[str, Any], names: tuple[str, ...]) -> None:
    before = composer().compose(inputs(**BEFORE))
    after = composer().compose(inputs("Next.", **{**BEFORE, **changed}))
    assert misses(before, after) == names
