"""Boundary: where the segment before this one ended.

Only its end stands here, as a date; how long ago that was changes with every turn and is the
TimeManager's to say.
"""

from __future__ import annotations

from mira.prompt.inputs import Inputs
from mira.prompt.layout import Placement
from mira.prompt.times import stamp
from mira.prompt.trinket import Fill, Trinket


def render(inputs: Inputs, fill: Fill) -> str:
    if inputs.boundary_end is None:
        return ""
    return fill("boundary", end=stamp(inputs.boundary_end, inputs.timezone))


BOUNDARY = Trinket(
    name="Boundary",
    placement=Placement.BOUNDARY,
    needs=("boundary_end", "timezone"),
    render=render,
    tag="boundary",
)
