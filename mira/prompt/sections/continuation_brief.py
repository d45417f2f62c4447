"""Continuation brief: the older turns of a long segment, which are in the prompt no more."""

from __future__ import annotations

from mira.prompt.inputs import Inputs
from mira.prompt.layout import Placement
from mira.prompt.tags import passage
from mira.prompt.trinket import Fill, Trinket

_MOST, _COMPACT = 12_000, 800


def render(inputs: Inputs, fill: Fill) -> str:
    text = passage(inputs.brief or "", _COMPACT if inputs.compact else _MOST)
    return fill("continuation_brief", text=text) if text else ""


CONTINUATION_BRIEF = Trinket(
    name="ContinuationBrief",
    placement=Placement.BRIEF,
    needs=("brief", "compact"),
    render=render,
    tag="continuation_brief",
)
