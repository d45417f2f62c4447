"""The model's own hand on what is remembered."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta

from mira.toolkit import Context, MemoryView, Parameters, Tool, ValidationFailed, operation

Id = Annotated[str, Meta(description="a memory's id: mem_ and eight hex digits", max_length=20)]
Fact = Annotated[str, Meta(description="one fact that stands by itself", max_length=4000)]
Moment = Annotated[
    datetime | None, Meta(description="ISO 8601 date and time with its offset from UTC")
]
LinkType = Literal[
    "conflicts", "supersedes", "corroborates", "refines", "exemplifies", "precedes",
    "contextualizes", "causes", "shares_entity", "other",
]  # fmt: skip


class Search(Parameters, frozen=True, kw_only=True):
    query: Annotated[str, Meta(description="what to look for", min_length=1, max_length=2000)]
    limit: Annotated[int, Meta(ge=1, le=20, description="how many at most")] = 8


class Create(Parameters, frozen=True, kw_only=True):
    text: Fact
    happens_at: Moment = None
    expires_at: Moment = None


class Link(Parameters, frozen=True, kw_only=True):
    id: Id
    to: Id
    type: LinkType
    reason: Annotated[str, Meta(max_length=500)] = ""


class Annotate(Parameters, frozen=True, kw_only=True):
    id: Id
    note: Annotated[str, Meta(description="the note to add", min_length=1, max_length=4000)]


class One(Parameters, frozen=True, kw_only=True):
    id: Id


class Merge(Parameters, frozen=True, kw_only=True):
    ids: Annotated[
        tuple[Id, ...], Meta(min_length=2, max_length=8, description="the memories to merge")
    ]
    text: Fact


class MemoryTool(Tool):
    name = "memory_tool"
    line = "Search, write and tend long-term memories of the user and the work together."
    needs = frozenset({"memory"})

    @operation
    async def search(self, ctx: Context, p: Search) -> str:
        """find memories by meaning and words"""
        found = await ctx.memories.search(p.query, p.limit)
        return "\n".join(_line(memory) for memory in found) or "Nothing is remembered about that."

    @operation
    async def create(self, ctx: Context, p: Create) -> str:
        """remember one fact for good; dates absolute"""
        for moment in (p.happens_at, p.expires_at):
            if moment is not None and moment.tzinfo is None:
                raise ValidationFailed("A date needs its offset from UTC, as in +02:00 or Z.")
        memory, outcome = await ctx.memories.create(
            p.text, happens_at=p.happens_at, expires_at=p.expires_at
        )
        said = {"reinforced": "This was known already, and counts for more now"}
        return f"{said.get(outcome, 'Remembered')}: {_line(memory)}"

    @operation
    async def link(self, ctx: Context, p: Link) -> str:
        """say how one memory stands to another"""
        await ctx.memories.link(p.id, p.to, p.type, p.reason)
        return f"{p.id} {p.type} {p.to}."

    @operation
    async def annotate(self, ctx: Context, p: Annotate) -> str:
        """add a note to a memory"""
        await ctx.memories.annotate(p.id, p.note)
        return f"Noted on {p.id}."

    @operation
    async def touch(self, ctx: Context, p: One) -> str:
        """say that a memory matters: it stays longer"""
        await ctx.memories.touch(p.id)
        return f"{p.id} counts for more now."

    @operation
    async def archive(self, ctx: Context, p: One) -> str:
        """put a memory away; it can be restored"""
        await ctx.memories.archive(p.id)
        return f"{p.id} is archived."

    @operation
    async def restore(self, ctx: Context, p: One) -> str:
        """take a memory back from the archive"""
        await ctx.memories.restore(p.id)
        return f"{p.id} is active again."

    @operation
    async def merge(self, ctx: Context, p: Merge) -> str:
        """make one memory of several that say the same"""
        return f"Merged into {_line(await ctx.memories.merge(p.ids, p.text))}"


def _line(memory: MemoryView) -> str:
    dated = f", {memory.happens_at:%Y-%m-%d %H:%M %Z}" if memory.happens_at else ""
    state = "" if memory.status == "active" else f", {memory.status}"
    newer = ", superseded" if memory.superseded else ""
    head = f"{memory.id} ({memory.importance:.2f}{dated}{state}{newer}) {memory.text}"
    return "\n".join([head, *(f"  {line}" for line in memory.linked)])
