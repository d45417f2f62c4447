"""What has been said in one turn, put together from its numbered events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import UUID

from mira.messages.stream import (
    AnyTurnEvent,
    Cancelled,
    Completed,
    Interrupted,
    Notice,
    Snapshot,
    TextAdded,
    ThinkingAdded,
    ToolProgress,
    TurnError,
)

Ending: TypeAlias = Completed | Cancelled | Interrupted | TurnError


@dataclass
class Reply:
    """A turn as a client knows it. Feed it every event once or more often, in order.

    An event that is known already changes nothing, and a piece of text that overlaps with what is
    there adds only what is new: so one may resume anywhere before the end.
    """

    turn_id: UUID
    text: str = ""
    attempt: int = 0
    seen: int = 0
    ending: Ending | None = None
    #: Tools at work now: the call's id and the tool's name.
    tools: dict[str, str] = field(default_factory=dict)

    def apply(self, event: AnyTurnEvent) -> bool:
        """Take one event in; False if it was known.

        A higher attempt begins anew: text and tools are cleared, and a turn that had ended goes
        on.
        """
        if event.attempt < self.attempt or (event.seq <= self.seen and not _stands_in(event)):
            return False
        if event.attempt > self.attempt:
            self.attempt, self.text, self.ending = event.attempt, "", None
            self.tools.clear()
        elif self.ending is not None:
            return False
        self.seen = max(self.seen, event.seq)
        match event:
            case TextAdded():
                # Offsets count characters, as Python does.
                self.text = self.text[: event.offset] + event.text
            case Snapshot():
                self.text = event.text
            case ToolProgress(phase="called" | "running" | "waiting"):
                self.tools[event.call_id] = event.name
            case ToolProgress():
                self.tools.pop(event.call_id, None)
            case Completed():
                self.text, self.ending = event.reply, event
            case Cancelled() | Interrupted():
                self.text, self.ending = event.text or self.text, event
            case TurnError():
                self.ending = event
            case Notice() | ThinkingAdded():
                pass
        return True


def words_of(notice: Notice) -> str:
    """A notice as a sentence for people."""
    if notice.kind == "dropped":
        return f"Left out for this model: {notice.detail}."
    return notice.detail or notice.kind.replace("_", " ")


def _stands_in(event: AnyTurnEvent) -> bool:
    """Whether the event may repeat the number of one that was seen.

    It stands for the whole turn, or its end, after the log that had the numbers was lost.
    """
    return isinstance(event, Snapshot | Completed | Cancelled | Interrupted | TurnError)
