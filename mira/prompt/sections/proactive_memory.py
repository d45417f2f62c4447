"""Proactive memory: what was found for this turn, memories and what was said, without being asked
for."""

from __future__ import annotations

from datetime import datetime

from mira.messages.content import Role
from mira.prompt.inputs import Inputs, SurfacedMemory, SurfacedPassage
from mira.prompt.layout import Placement
from mira.prompt.tags import quoted
from mira.prompt.times import age, stamp
from mira.prompt.trinket import Fill, Trinket

#: Memories and passages, linked memories among them.
CAP = 20
LINKED = 2
_COMPACT = 3
_TEXT, _LINKED_TEXT, _PASSAGE, _COMPACT_TEXT = 600, 300, 600, 160


def render(inputs: Inputs, fill: Fill) -> str:
    most = _COMPACT if inputs.compact else CAP
    passages = inputs.passages[: 1 if inputs.compact else CAP]
    memories = inputs.memories[: most - len(passages)]
    if not memories and not passages:
        return ""
    beside = 0 if inputs.compact else CAP - len(memories) - len(passages)
    shown = []
    for memory in memories:
        linked = memory.linked[: min(LINKED, beside)]
        beside -= len(linked)
        shown.append(
            (
                _memory(memory, inputs.now, _COMPACT_TEXT if inputs.compact else _TEXT),
                tuple(
                    f"{quoted(one.relation, 30) or 'linked'}: [{quoted(one.short_id, 20)}] "
                    f"{quoted(one.text, _LINKED_TEXT)}"
                    for one in linked
                ),
            )
        )
    most_of_it = _COMPACT_TEXT if inputs.compact else _PASSAGE
    said = tuple(_passage(one, inputs.timezone, most_of_it) for one in passages)
    return fill("proactive_memory", memories=tuple(shown), passages=said)


def _memory(memory: SurfacedMemory, now: datetime, most: int) -> str:
    facts = [
        quoted(memory.short_id, 20),
        f"importance {memory.importance:.2f}",
        age(now - memory.created_at),
    ]
    if memory.superseded:
        facts.append("superseded by a newer one")
    return f"[{', '.join(facts)}] {quoted(memory.text, most)}"


def _passage(passage: SurfacedPassage, zone: str, most: int) -> str:
    who = "you" if passage.who is Role.ASSISTANT else "the user"
    return f"[{stamp(passage.said_at, zone)}, {who}] {quoted(passage.text, most)}"


PROACTIVE_MEMORY = Trinket(
    name="ProactiveMemory",
    placement=Placement.HUD,
    needs=("memories", "passages", "now", "timezone", "compact"),
    render=render,
    tag="memories",
)
