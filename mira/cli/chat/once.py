"""One message, one answer: for pipes and programs, and for a quick question in the terminal."""

from __future__ import annotations

import signal
import sys
from uuid import UUID

import anyio
import msgspec

from mira.cli.chat.line import Line
from mira.cli.chat.reply import Reply, words_of
from mira.cli.output import printable
from mira.errors import Unavailable
from mira.messages.stream import (
    AnyTurnEvent,
    Cancelled,
    Completed,
    Interrupted,
    MemoriesUsed,
    Notice,
    ToolProgress,
    TurnError,
    TurnEvent,
)
from mira.messages.turn import Timings, Usage
from mira.messages.wire import Accepted, AskConfirm, Cancel, FrameError

#: Seconds without a connection after which one message is given up.
PATIENCE = 30.0

INTERRUPTED = 130


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    code: str
    detail: str


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What `--json` prints: a finished turn as POST /v1/chat answers it.

    A turn that failed, or was stopped, has `error`, and in `reply` what was written till then.
    """

    turn_id: UUID | None
    request_id: str
    reply: str
    usage: Usage | None = None
    memories: MemoriesUsed | None = None
    tools_used: tuple[str, ...] | None = None
    timings: Timings | None = None
    error: Failure | None = None

    @property
    def exit_code(self) -> int:
        """The code that the command ends with."""
        if self.error is None:
            return 0
        return INTERRUPTED if self.error.code == "cancelled" else 1


class Quiet:
    """For pipes: the answer comes whole at its end, so that an attempt that was begun anew leaves
    nothing behind."""

    def heard(self, reply: Reply, event: AnyTurnEvent) -> None:
        if isinstance(event, Notice):
            self.told(words_of(event))
        elif isinstance(event, ToolProgress) and event.phase in ("done", "failed"):
            self.told(f"{event.name}: {event.phase} {event.detail}".rstrip())

    def told(self, text: str) -> None:
        print(printable(text), file=sys.stderr, flush=True)

    def end(self, answer: Answer) -> None:
        """The last word: the answer, and what went wrong, if anything did."""
        if answer.reply:
            print(answer.reply)
        self._told_failure(answer)

    def _told_failure(self, answer: Answer) -> None:
        if answer.error is not None:
            self.told(f"mira: {answer.error.detail} ({answer.error.code})")


class Aloud(Quiet):
    """For a terminal: the answer is printed as it is written."""

    def __init__(self) -> None:
        self._printed = ""

    def heard(self, reply: Reply, event: AnyTurnEvent) -> None:
        if not reply.text.startswith(self._printed):
            print("\n(begun again)")
            self._printed = ""
        new = reply.text[len(self._printed) :]
        self._printed = reply.text
        print(printable(new), end="", flush=True)
        super().heard(reply, event)

    def end(self, answer: Answer) -> None:
        if self._printed and not self._printed.endswith("\n"):
            print()
        self._told_failure(answer)


class Once:
    """Sends one message and hears its turn to the end.

    Ctrl-C stops the turn and waits for what was written; a second one leaves at once.
    """

    def __init__(self, line: Line, audience: Quiet) -> None:
        self._line = line
        self._audience = audience
        self._request_id = ""
        self._turn_id: UUID | None = None
        self._stopping = False
        self._answer: Answer | None = None

    async def ask(self, content: str, attachments: tuple[UUID, ...] = ()) -> Answer | None:
        """The answer to a message and its files, or why there is none; None if left by a second
        Ctrl-C.

        Raises Unavailable when there is no connection for PATIENCE seconds.
        """
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_line)
            tasks.start_soon(self._watch_signals, tasks.cancel_scope)
            self._request_id = self._line.new_request()
            await self._line.say(content, self._request_id, attachments)
            self._answer = await self._hear()
            tasks.cancel_scope.cancel()
        return self._answer

    async def _keep_line(self) -> None:
        await self._line.run(give_up_after=PATIENCE)

    async def _hear(self) -> Answer:
        reply: Reply | None = None
        async for item in self._line.items:
            match item:
                case Accepted() if item.request_id == self._request_id:
                    self._turn_id = item.turn_id
                    reply = reply or Reply(item.turn_id)
                    if self._stopping:
                        await self._line.order(Cancel(turn_id=item.turn_id))
                case FrameError() if item.request_id == self._request_id:
                    return self._refused(item)
                case AskConfirm():
                    self._audience.told(
                        f"{item.tool} waits for a yes or no. Answer it in: mira chat"
                    )
                case TurnEvent() if reply is not None and item.turn_id == reply.turn_id:
                    if reply.apply(item):
                        self._audience.heard(reply, item)
                    if reply.ending is not None:
                        return self._of(reply)
                case _:
                    pass
        raise Unavailable("The connection ended before the answer.")

    async def _watch_signals(self, scope: anyio.CancelScope) -> None:
        with anyio.open_signal_receiver(signal.SIGINT) as signals:
            async for _ in signals:
                if self._stopping or not self._line.connected:
                    scope.cancel()
                    return
                self._stopping = True
                self._audience.told("Stopping… (Ctrl-C again leaves)")
                if self._turn_id is not None:
                    await self._line.order(Cancel(turn_id=self._turn_id))

    def _of(self, reply: Reply) -> Answer:
        answer = Answer(turn_id=reply.turn_id, request_id=self._request_id, reply=reply.text)
        match reply.ending:
            case Completed() as done:
                return msgspec.structs.replace(
                    answer,
                    usage=done.usage,
                    memories=done.memories,
                    tools_used=done.tools_used,
                    timings=done.timings,
                )
            case TurnError() as failed:
                error = Failure(code=failed.code, detail=failed.detail)
            case Cancelled():
                error = Failure(code="cancelled", detail="The turn was stopped.")
            case Interrupted() | None:
                error = Failure(
                    code="interrupted", detail="The server was stopped in the middle of the answer."
                )
        return msgspec.structs.replace(answer, error=error)

    def _refused(self, error: FrameError) -> Answer:
        return Answer(
            turn_id=None,
            request_id=self._request_id,
            reply="",
            error=Failure(code=error.code, detail=error.detail),
        )
