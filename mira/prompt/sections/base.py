"""Base prompt: who the assistant is, how it works, what the marks in the prompt mean."""

from __future__ import annotations

from mira.prompt.contract import as_prompt
from mira.prompt.inputs import Inputs
from mira.prompt.layout import Placement
from mira.prompt.tags import quoted
from mira.prompt.trinket import Fill, Trinket

_NAME = 60


def render(inputs: Inputs, fill: Fill) -> str:
    user = quoted(inputs.user, _NAME) or "the user"
    if inputs.compact:
        return fill("base_compact", user=user)
    return fill("base", user=user, contract=as_prompt())


BASE = Trinket(
    name="BasePrompt",
    placement=Placement.SYSTEM,
    needs=("user", "compact"),
    render=render,
    tag=None,
)
