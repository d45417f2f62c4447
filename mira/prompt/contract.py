"""The behavioral contract: the sections of the base prompt by which answers are judged."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from mira.prompt.templates import FOLDER

_HEADING = re.compile(r"^## (?P<title>.+?) \{#(?P<id>[a-z]+)\}$", re.MULTILINE)


class ContractSection(NamedTuple):
    """One section. `id` is what signals and observations refer to: it never changes its meaning,
    though title and text may change."""

    id: str
    title: str
    text: str


@cache
def contract_sections() -> tuple[ContractSection, ...]:
    """The sections in the order of the prompt."""
    source = (FOLDER / "contract.md").read_text(encoding="utf-8")
    headings = list(_HEADING.finditer(source))
    ends = [heading.start() for heading in headings[1:]] + [len(source)]
    return tuple(
        ContractSection(heading["id"], heading["title"], source[heading.end() : end].strip())
        for heading, end in zip(headings, ends, strict=True)
    )


@cache
def as_prompt() -> str:
    """The contract as the model reads it: without the ids."""
    return "\n\n".join(f"## {one.title}\n{one.text}" for one in contract_sections())
