"""User portrait: in a few sentences, who the user is."""

from __future__ import annotations

from mira.prompt.inputs import Inputs
from mira.prompt.layout import Placement
from mira.prompt.tags import passage
from mira.prompt.trinket import Fill, Trinket

_MOST = 2_000


def render(inputs: Inputs, fill: Fill) -> str:
    text = "" if inputs.compact else passage(inputs.portrait or "", _MOST)
    return fill("user_portrait", text=text) if text else ""


USER_PORTRAIT = Trinket(
    name="UserPortrait",
    placement=Placement.SYSTEM,
    needs=("portrait", "compact"),
    render=render,
    tag="user_portrait",
)
