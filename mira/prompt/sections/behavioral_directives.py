"""Behavioral directives: how this user wants to be worked with, as learned and checked."""

from __future__ import annotations

from mira.prompt.inputs import Inputs
from mira.prompt.layout import Placement
from mira.prompt.tags import passage
from mira.prompt.trinket import Fill, Trinket

_MOST, _COMPACT = 6_000, 240


def render(inputs: Inputs, fill: Fill) -> str:
    text = passage(inputs.directives or "", _COMPACT if inputs.compact else _MOST)
    return fill("behavioral_directives", text=text) if text else ""


BEHAVIORAL_DIRECTIVES = Trinket(
    name="BehavioralDirectives",
    placement=Placement.SYSTEM,
    needs=("directives", "compact"),
    render=render,
    tag="behavioral_directives",
)
