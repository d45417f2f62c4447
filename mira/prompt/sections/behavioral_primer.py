"""Behavioral primer: a few turns that show what the contract means. Off unless asked for."""

from __future__ import annotations

from mira.prompt.inputs import Inputs
from mira.prompt.layout import Placement
from mira.prompt.trinket import Fill, Trinket


def render(inputs: Inputs, fill: Fill) -> str:
    return fill("behavioral_primer") if inputs.primer and not inputs.compact else ""


BEHAVIORAL_PRIMER = Trinket(
    name="BehavioralPrimer",
    placement=Placement.EARLIER,
    needs=("primer", "compact"),
    render=render,
    tag="examples",
)
