"""What prompts are composed of in tests, and what a provider gets to see of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID

import msgspec

from mira.llm.anthropic_request import parameters
from mira.llm.base import Request, SystemBlock
from mira.messages.content import Block, Role, Said, Text
from mira.prompt.composer import Composer
from mira.prompt.inputs import Inputs, ManifestRow, SummaryView, SurfacedMemory
from mira.prompt.layout import Prompt
from mira.prompt.templates import Templates
from mira.prompt.turn import Turn

NOW = datetime(2026, 11, 30, 19, 30, tzinfo=UTC)
ZONE = "Europe/Berlin"
CLAUDE = "claude-sonnet-5-5"


@cache
def composer() -> Composer:
    return Composer(Templates())


def said(role: Role, *blocks: Block | str) -> Said:
    texts = (Text(text=block) if isinstance(block, str) else block for block in blocks)
    return Said(role=role, blocks=tuple(texts))


def turn(words: str, answer: str) -> Turn:
    return Turn.of([said(Role.USER, words), said(Role.ASSISTANT, answer)])


def inputs(words: str = "And now?", **changed: Any) -> Inputs:
    """The inputs of a first message; `changed` says what else there is."""
    bare = Inputs(
        user="Ada",
        timezone=ZONE,
        now=NOW,
        last_message_at=None,
        turns=(),
        words=(Text(text=words),),
    )
    return msgspec.structs.replace(bare, **changed)


def summary(number: int, complexity: float = 1, **changed: Any) -> SummaryView:
    """The summary of the segment `number` days ago."""
    plain = SummaryView(
        segment_id=UUID(int=number),
        title=f"Title {number}",
        trace=f"I lived day {number} in full.",
        precis=f"I lived day {number}.",
        complexity=complexity,
        started_at=NOW - timedelta(days=number, hours=2),
        ended_at=NOW - timedelta(days=number),
    )
    return msgspec.structs.replace(plain, **changed)


def row(number: int, **changed: Any) -> ManifestRow:
    """The segment `number` days ago, of an hour."""
    start = NOW - timedelta(days=number)
    plain = ManifestRow(
        title=f"Title {number}", started_at=start, ended_at=start + timedelta(hours=1)
    )
    return msgspec.structs.replace(plain, **changed)


def memory(text: str, **changed: Any) -> SurfacedMemory:
    plain = SurfacedMemory(
        short_id="mem_1a2b3c4d", text=text, importance=0.5, created_at=NOW - timedelta(days=40)
    )
    return msgspec.structs.replace(plain, **changed)


def section(prompt: Prompt, name: str) -> str:
    """The text of a section; "" if it is not in the prompt."""
    return next((one.text for one in prompt.rendered if one.name == name), "")


def hud(prompt: Prompt) -> str:
    first = prompt.messages[-1].blocks[0]
    assert isinstance(first, Text)
    return first.text


def whole(prompt: Prompt) -> str:
    """All that the model reads, in order, between blank lines."""
    texts = [text for text, _ in prompt.system]
    texts += [getattr(block, "text", "") for one in prompt.messages for block in one.blocks]
    return "\n\n".join(texts)


def body(prompt: Prompt, model: str = CLAUDE) -> dict[str, Any]:
    """What Anthropic's API is sent."""
    request = Request(
        system=tuple(SystemBlock(text=text, cache=cache) for text, cache in prompt.system),
        messages=prompt.messages,
        cache_marks=prompt.cache_marks,
    )
    wanted, _ = parameters(model, f"anthropic:{model}", request)
    return wanted
