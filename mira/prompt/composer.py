"""Composition: from what was gathered to what the model is sent. Pure.

Order: the system prompt, then the live turns, then the user's message, whose first block is what
changes with every turn. Nothing volatile stands before anything that could be cached, so that each
request extends the one before it byte for byte up to the cache marks.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec

from mira.messages.content import Block, Role, Said, Text
from mira.prompt.budget import estimate, estimate_said
from mira.prompt.templates import Templates

#: Shown at the end of an answer that was stopped.
STOPPED = "\n[stopped here]"


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """What a prompt is made of.

    `turns` are the live turns, oldest first, each with its messages; `words` is what the user says
    now, or () where the turn is not begun by the user, and `outcome` then says what it is about.
    """

    user: str
    timezone: str
    now: datetime
    last_message_at: datetime | None
    turns: tuple[tuple[Said, ...], ...]
    words: tuple[Block, ...]
    outcome: str | None = None


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """What the model is sent. `cache_until` is the number of leading messages that will stand
    unchanged in the next prompt."""

    system: tuple[tuple[str, bool], ...]
    messages: tuple[Said, ...]
    cache_until: int
    tokens_estimated: int


class Composer:
    """Composes prompts. Holds templates only."""

    def __init__(self, templates: Templates) -> None:
        self._templates = templates

    def compose(self, inputs: Inputs) -> Prompt:
        """The prompt of one turn."""
        system = self._templates.render("base", user=inputs.user)
        history = merge_roles([said for turn in inputs.turns for said in turn])
        final = Said(
            role=Role.USER,
            blocks=(
                Text(text=self._hud(inputs)),
                *inputs.words,
                *((Text(text=inputs.outcome),) if inputs.outcome else ()),
            ),
        )
        messages = merge_roles([*history, final])
        cached = len(history) if len(messages) > len(history) else len(history) - 1
        return Prompt(
            system=((system, True),),
            messages=tuple(messages),
            cache_until=max(0, cached),
            tokens_estimated=estimate(system) + sum(map(estimate_said, messages)),
        )

    def _hud(self, inputs: Inputs) -> str:
        local = inputs.now.astimezone(ZoneInfo(inputs.timezone))
        silence = inputs.last_message_at and inputs.now - inputs.last_message_at
        return self._templates.render(
            "now",
            weekday=local.strftime("%A"),
            date=local.date().isoformat(),
            time=local.strftime("%H:%M"),
            zone=inputs.timezone,
            silence=in_words(silence) if silence and silence >= timedelta(minutes=1) else "",
        )


def merge_roles(messages: list[Said]) -> list[Said]:
    """Join neighbours of one role, as providers that insist on alternation need it.

    A turn that got no answer leaves two messages of the user side by side. Tool results are the
    user's side too, but stand alone: a provider ties them to the calls before them.
    """
    merged: list[Said] = []
    for said in messages:
        if merged and merged[-1].role is said.role and said.role is not Role.TOOL:
            merged[-1] = Said(role=said.role, blocks=merged[-1].blocks + said.blocks)
        else:
            merged.append(said)
    return merged


def in_words(span: timedelta) -> str:
    """A span of time as a person would say it: its largest whole unit."""
    minutes = int(span.total_seconds() // 60)
    for size, name in ((60 * 24, "day"), (60, "hour"), (1, "minute")):
        if minutes >= size:
            count = minutes // size
            return f"{count} {name}{'s' if count != 1 else ''}"
    return "less than a minute"
