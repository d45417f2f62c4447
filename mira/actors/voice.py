"""The numbered events of one turn: counted here, appended to the conversation's feed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from mira.messages.stream import (
    AnyTurnEvent,
    Cancelled,
    Completed,
    Interrupted,
    MemoriesUsed,
    Notice,
    Snapshot,
    TextAdded,
    ThinkingAdded,
    ToolProgress,
    TurnError,
)
from mira.messages.turn import Timings, Usage

#: Numbers reserved for each attempt, so that a later attempt counts on above every earlier one
#: without having to know how far that one came before its process died.
SPAN = 1_000_000


class Voice:
    """Speaks for one turn. `say` is where events go."""

    def __init__(self, turn_id: UUID, attempt: int, say: Callable[[AnyTurnEvent], None]) -> None:
        self._turn_id = turn_id
        self._say = say
        self.attempt = attempt
        self._restart()

    def _restart(self) -> None:
        self._seq = (self.attempt - 1) * SPAN
        self._text_offset = 0
        self._thinking_offset = 0
        #: Whether a client may have seen anything of this attempt.
        self.has_spoken = False

    def speak_last(self) -> None:
        """Number what follows above everything that this attempt can have said before."""
        self._seq = self.attempt * SPAN - 10

    def next_attempt(self, attempt: int, text: str) -> None:
        """What was said is void but for `text`, which is said again under the new attempt."""
        self.attempt = attempt
        self._restart()
        if text:
            self.text(text)

    def _next(self) -> int:
        self._seq += 1
        self.has_spoken = True
        return self._seq

    def text(self, text: str) -> None:
        offset = self._text_offset
        self._text_offset += len(text)
        self._say(
            TextAdded(
                turn_id=self._turn_id, attempt=self.attempt, seq=self._next(), text=text,
                offset=offset,
            )
        )  # fmt: skip

    def thinking(self, text: str) -> None:
        offset = self._thinking_offset
        self._thinking_offset += len(text)
        self._say(
            ThinkingAdded(
                turn_id=self._turn_id, attempt=self.attempt, seq=self._next(), text=text,
                offset=offset,
            )
        )  # fmt: skip

    def tool(self, phase: str, call_id: str, name: str, detail: str = "") -> None:
        self._say(
            ToolProgress(
                turn_id=self._turn_id, attempt=self.attempt, seq=self._next(), phase=phase,
                call_id=call_id, name=name, detail=detail,
            )
        )  # fmt: skip

    def notice(self, kind: str, detail: str) -> None:
        self._say(
            Notice(
                turn_id=self._turn_id, attempt=self.attempt, seq=self._next(), kind=kind,
                detail=detail,
            )
        )  # fmt: skip

    def snapshot(self, text: str) -> None:
        self._say(
            Snapshot(turn_id=self._turn_id, attempt=self.attempt, seq=self._next(), text=text)
        )

    def failed(self, code: str, detail: str, *, retry: bool) -> None:
        self._say(
            TurnError(
                turn_id=self._turn_id, attempt=self.attempt, seq=self._next(), code=code,
                detail=detail, retry=retry,
            )
        )  # fmt: skip

    def cancelled(self, text: str) -> None:
        self._say(
            Cancelled(turn_id=self._turn_id, attempt=self.attempt, seq=self._next(), text=text)
        )

    def interrupted(self, text: str) -> None:
        self._say(
            Interrupted(turn_id=self._turn_id, attempt=self.attempt, seq=self._next(), text=text)
        )

    def completed(
        self,
        reply: str,
        usage: Usage,
        tools: tuple[str, ...],
        timings: Timings,
        at: datetime,
        memories: MemoriesUsed | None = None,
    ) -> None:
        self._say(
            Completed(
                turn_id=self._turn_id, attempt=self.attempt, seq=self._next(), reply=reply,
                usage=usage, memories=memories or MemoriesUsed(), tools_used=tools,
                timings=timings, at=at,
            )
        )  # fmt: skip
