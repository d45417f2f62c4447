"""The end of the conversation so far, to begin with."""

from __future__ import annotations

from uuid import UUID

import msgspec

from mira.cli.http import Http


class Past(msgspec.Struct, frozen=True):
    """A message of the history, as far as it is shown."""

    turn_id: UUID
    role: str
    text: str
    state: str


class _Page(msgspec.Struct, frozen=True):
    messages: tuple[Past, ...]


async def newest(http: Http, count: int) -> tuple[Past, ...]:
    """The newest `count` messages that hold words, oldest first; fewer if tools came between."""
    if count == 0:
        return ()
    page = await http.get("/v1/messages", _Page, limit=count)
    return tuple(m for m in reversed(page.messages) if m.role != "tool" and m.text.strip())
