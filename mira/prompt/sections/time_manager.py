"""Time manager: what time it is where the user is, and how long it was silent."""

from __future__ import annotations

from datetime import timedelta

from mira.prompt.inputs import Inputs
from mira.prompt.layout import Placement
from mira.prompt.times import in_words, local
from mira.prompt.trinket import Fill, Trinket


def render(inputs: Inputs, fill: Fill) -> str:
    now = local(inputs.now, inputs.timezone)
    silence = inputs.now - inputs.last_message_at if inputs.last_message_at else None
    return fill(
        "time_manager",
        weekday=now.strftime("%A"),
        date=now.date().isoformat(),
        time=now.strftime("%H:%M"),
        zone=inputs.timezone,
        # A clock that was set back shows no silence rather than a negative one.
        silence=in_words(silence) if silence and silence >= timedelta(minutes=1) else "",
    )


TIME_MANAGER = Trinket(
    name="TimeManager",
    placement=Placement.HUD,
    needs=("now", "last_message_at", "timezone"),
    render=render,
    tag="now",
)
