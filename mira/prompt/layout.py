"""What the model is sent, in which order, and up to where it can be cached. Pure.

    system      blocks, the most stable first              ← mark, at the end
    documents   a message                                  ← mark
    earlier     a message: summaries, examples
    continuity  the last turns of the segment before
    boundary    a message: where this segment begins       ← mark
    brief       a message: what stands for its older turns
    turns       the turns of this segment                  ← mark, after the last
    now         the HUD, what the user says

What stands before a mark changes seldom or grows at its end. What changes with every turn stands
behind all of them, in the HUD, which is part of no later prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from mira.messages.content import Role, Said, Shown, Text
from mira.prompt.turn import Turn

#: Providers take four marks; one stands at the end of the system blocks.
MESSAGE_MARKS = 3
#: A provider looks for what it has cached so many blocks before a mark.
REACH = 20
#: Between the sections that share a block.
BETWEEN = "\n\n"
#: Shown at the end of an answer that was stopped.
STOPPED = "\n[stopped here]"
#: Stands at the beginning where it would be the assistant's word: models expect the user's.
OPENING = "(The conversation goes on from here.)"


class Placement(StrEnum):
    """Where a section stands, in the order of the prompt."""

    SYSTEM = "system"
    DOCUMENTS = "documents"
    EARLIER = "earlier"
    BOUNDARY = "boundary"
    BRIEF = "brief"
    HUD = "hud"

    @property
    def cached(self) -> bool:
        """Whether a section here may stand before a mark; if not, it may change in every turn."""
        return self is not Placement.HUD


class Rendered(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one section: its text, or why it is not in the prompt."""

    name: str
    placement: Placement
    text: str
    tokens: int
    #: The kind of error that kept it out; its text is "" then.
    error: str | None = None


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """What the model is sent.

    `system` are texts, each with whether a cache mark stands at its end. `cache_marks` are numbers
    of leading messages, rising: a mark stands after each. `boundary` is the number of messages up
    to where this segment begins. Neighbouring messages may be of one role.
    """

    system: tuple[tuple[str, bool], ...]
    messages: tuple[Said, ...]
    cache_marks: tuple[int, ...]
    boundary: int
    tokens_estimated: int
    #: All sections that had something to show or failed, in the order of the prompt.
    rendered: tuple[Rendered, ...] = ()


class Layout(NamedTuple):
    """Messages with their marks, as in Prompt."""

    messages: tuple[Said, ...]
    cache_marks: tuple[int, ...]
    boundary: int


def lay_out(
    sections: Mapping[Placement, Sequence[str]],
    continuity: Sequence[Turn],
    turns: Sequence[Turn],
    now: tuple[Shown, ...],
) -> Layout:
    """The messages of a prompt. `now` is what the user says; the HUD comes before it, in the same
    message, the last."""
    messages: list[Said] = []

    def say(placement: Placement) -> int:
        if texts := sections.get(placement):
            messages.append(Said(role=Role.USER, blocks=(Text(text=BETWEEN.join(texts)),)))
        return len(messages)

    documents = say(Placement.DOCUMENTS)
    say(Placement.EARLIER)
    messages += _said(continuity)
    boundary = say(Placement.BOUNDARY)
    say(Placement.BRIEF)
    messages += _said(turns)
    marks = [documents, boundary]
    if turns:
        newest = turns[-1].said
        if sum(len(said.blocks) for said in newest) >= REACH:
            # Further back than the provider looks by itself: where the last prompt's mark stood.
            marks.append(len(messages) - len(newest))
        marks.append(len(messages))
    hud = sections.get(Placement.HUD, ())
    blocks = (Text(text=BETWEEN.join(hud)), *now) if hud else now
    messages.append(Said(role=Role.USER, blocks=blocks))
    if messages[0].role is not Role.USER:
        messages.insert(0, Said(role=Role.USER, blocks=(Text(text=OPENING),)))
        marks = [mark + 1 for mark in marks if mark]
        boundary += 1
    distinct = sorted({mark for mark in marks if mark})
    return Layout(tuple(messages), tuple(distinct[-MESSAGE_MARKS:]), boundary)


def _said(turns: Iterable[Turn]) -> list[Said]:
    return [said for turn in turns for said in turn.said]
