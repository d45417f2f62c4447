"""What clients are told while a turn runs: the numbered events of a turn.

`seq` rises over all attempts of a turn, from 1; a higher `attempt` means: clear and start again.
`offset` is the number of characters (Unicode code points) of the same kind that came before in
this attempt.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import msgspec

from mira.messages.turn import Timings, Usage


class TurnEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """A numbered event of one turn."""

    turn_id: UUID
    attempt: int
    seq: int


class TextAdded(TurnEvent, frozen=True, kw_only=True, tag="text"):
    text: str
    offset: int


class ThinkingAdded(TurnEvent, frozen=True, kw_only=True, tag="thinking"):
    text: str
    offset: int


class ToolProgress(TurnEvent, frozen=True, kw_only=True, tag="tool"):
    """`phase` is `called`, `running`, `done`, `failed` or `waiting` (for the user)."""

    phase: str
    call_id: str
    name: str
    detail: str = ""


class Notice(TurnEvent, frozen=True, kw_only=True, tag="notice"):
    """Something the user should know: `kind` is `provider_switch`, `retry`, `degraded`, …"""

    kind: str
    detail: str


class TurnError(TurnEvent, frozen=True, kw_only=True, tag="error"):
    """The turn has failed. The message is kept; `retry` says whether it can be tried again."""

    code: str
    detail: str
    retry: bool = True


class Snapshot(TurnEvent, frozen=True, kw_only=True, tag="snapshot"):
    """The log was lost or cut: this is all the text so far; events after `seq` follow."""

    text: str


class Interrupted(TurnEvent, frozen=True, kw_only=True, tag="interrupted"):
    """The process was stopped in the middle; what was written is kept."""

    text: str


class Cancelled(TurnEvent, frozen=True, kw_only=True, tag="cancelled"):
    """The user stopped the turn; what was written is kept."""

    text: str


class MemoriesUsed(msgspec.Struct, frozen=True, kw_only=True):
    surfaced: tuple[str, ...] = ()
    cited: tuple[str, ...] = ()


class Completed(TurnEvent, frozen=True, kw_only=True, tag="complete"):
    """The turn is committed: `reply` is the whole text."""

    reply: str
    usage: Usage
    memories: MemoriesUsed
    tools_used: tuple[str, ...]
    timings: Timings
    at: datetime


AnyTurnEvent = (
    TextAdded
    | ThinkingAdded
    | ToolProgress
    | Notice
    | TurnError
    | Snapshot
    | Interrupted
    | Cancelled
    | Completed
)

#: After one of these no event of the same attempt follows.
CLOSING = (TurnError, Interrupted, Cancelled, Completed)
