"""Composition: from what was gathered to what the model is sent. Pure.

Every trinket renders its section, each on its own: one that fails is left out and named, and the
turn goes on. Where a section stands is its placement's to say (mira.prompt.layout).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from mira.messages.content import Role, Said, Text
from mira.prompt.bounds import bounded, shortened
from mira.prompt.budget import estimate, estimate_said
from mira.prompt.inputs import Inputs
from mira.prompt.layout import Placement, Prompt, Rendered, lay_out
from mira.prompt.sections import SECTIONS
from mira.prompt.tags import neutral, wrapped
from mira.prompt.templates import Templates
from mira.prompt.trinket import Trinket
from mira.telemetry import logger

log = logger("composer")

#: The longest section, whatever its trinket thinks, in characters.
LONGEST = 24_000
#: Sections that are kept once rendered: those of some dozens of conversations.
_KEPT = 512
_EMPTY = Inputs(
    user="",
    timezone="UTC",
    now=datetime.min.replace(tzinfo=UTC),
    last_message_at=None,
    turns=(),
    words=(),
)


class Composer:
    """Composes prompts. Holds templates and trinkets, and what it rendered last."""

    def __init__(self, templates: Templates, sections: Sequence[Trinket] = SECTIONS) -> None:
        self._templates = templates
        order = list(Placement)
        self._sections = sorted(sections, key=lambda section: order.index(section.placement))
        # Most of what stands before a mark is what stood there in the last turn.
        self._kept = lru_cache(maxsize=_KEPT)(self._text)

    def compose(self, inputs: Inputs) -> Prompt:
        """The prompt of one turn. Never fails for the sake of a section."""
        rendered = tuple(
            one for section in self._sections if (one := self._render(section, inputs)) is not None
        )
        texts: dict[Placement, list[str]] = {}
        for one in rendered:
            if one.error is None:
                texts.setdefault(one.placement, []).append(one.text)
        outcome = (Text(text=inputs.outcome),) if inputs.outcome else ()
        spoken = Said(role=Role.USER, blocks=(*inputs.words, *outcome))
        (now,) = bounded([spoken], inputs.share)
        layout = lay_out(texts, inputs.continuity, inputs.turns, now.blocks)
        system = texts.get(Placement.SYSTEM, [])
        return Prompt(
            system=tuple((text, number == len(system)) for number, text in enumerate(system, 1)),
            messages=layout.messages,
            cache_marks=layout.cache_marks,
            boundary=layout.boundary,
            tokens_estimated=sum(one.tokens for one in rendered)
            + sum(turn.tokens for turn in (*inputs.continuity, *inputs.turns))
            + estimate_said(now),
            rendered=rendered,
        )

    def _render(self, section: Trinket, inputs: Inputs) -> Rendered | None:
        text, error = "", None
        try:
            seen = msgspec.structs.replace(
                _EMPTY, **{name: getattr(inputs, name) for name in section.needs}
            )
            text = (self._kept if section.placement.cached else self._text)(section, seen)
        except Exception as raised:
            # Whatever it is, it is the section's alone.
            error = type(raised).__name__
            log.error("section_failed", section=section.name, exc_info=raised)
        if not text and error is None:
            return None
        return Rendered(
            name=section.name,
            placement=section.placement,
            text=text,
            tokens=estimate(text) if text else 0,
            error=error,
        )

    def _text(self, section: Trinket, inputs: Inputs) -> str:
        text = section.render(inputs, self._templates.render).strip()
        if not text or section.tag is None:
            return text
        return wrapped(section.tag, neutral(shortened(text, LONGEST, "section")))
