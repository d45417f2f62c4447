"""The conversation as the terminal shows it: every item heard becomes something seen."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from mira.cli.chat.blocks import settled
from mira.cli.chat.line import Item, Lost
from mira.cli.chat.past import Past
from mira.cli.chat.reply import Reply, words_of
from mira.cli.chat.screen import Screen
from mira.messages.stream import (
    AnyTurnEvent,
    Cancelled,
    Interrupted,
    Notice,
    ToolProgress,
    TurnError,
    TurnEvent,
)
from mira.messages.wire import (
    Accepted,
    AskConfirm,
    FrameError,
    PendingAction,
    QueuedTurn,
    Ready,
    TurnBegun,
)

#: Ended turns remembered, against events that come twice.
_MOST = 100


class Thread:
    """Shows turns one after another, each with its message above it.

    A message that waits for an earlier answer stands below until its own turn begins.
    """

    def __init__(
        self, screen: Screen, past: Sequence[Past] = (), notes: Sequence[str] = ()
    ) -> None:
        """Begins with `past`, then `notes`, which no turn needs to repeat."""
        self._screen = screen
        self._notes = notes
        self._introduced = False
        self._below = screen.below
        self._past = past
        #: Turns that run or wait, oldest first.
        self._open: dict[UUID, Reply] = {}
        #: Messages not shown yet, and whether another device sent them.
        self._unsaid: dict[UUID, tuple[str, bool]] = {}
        #: Messages sent and not accepted yet; None once shown.
        self._sent: dict[str, str | None] = {}
        self._ended: dict[UUID, int] = {}
        #: What of which answer stands in the thread.
        self._showing: UUID | None = None
        self._shown = ""
        #: The turn that was told to stop; None if it was not accepted yet.
        self._told_to_stop: UUID | None = None
        self._lost = "Connecting…"
        self.questions: dict[UUID, PendingAction | AskConfirm] = {}
        self._refresh()

    @property
    def running(self) -> UUID | None:
        """The turn that runs, or would run next."""
        return next(iter(self._open), None)

    @property
    def unaccepted(self) -> bool:
        """Whether a message was sent that the server has not accepted yet."""
        return bool(self._sent)

    def sent(self, request_id: str, text: str) -> None:
        """A message has gone out."""
        if self._open or self._sent:
            self._sent[request_id] = text
        else:
            self._screen.user(text)
            self._sent[request_id] = None
        self._refresh()

    def hear(self, item: Item) -> str | None:
        """Show what came. Returns the text of a message that was refused."""
        refused = None
        match item:
            case Ready():
                self._ready(item)
            case Lost():
                self._lost = f"{item.reason} Trying again…"
            case Accepted():
                text = self._sent.pop(item.request_id, None)
                if text is not None:
                    self._unsaid[item.turn_id] = (text, False)
                self._open.setdefault(item.turn_id, Reply(item.turn_id))
            case TurnBegun():
                if item.turn_id not in self._open:
                    self._unsaid[item.turn_id] = (item.content, True)
                    self._open[item.turn_id] = Reply(item.turn_id)
            case AskConfirm():
                self._ask(item)
            case FrameError():
                refused = self._sent.pop(item.request_id, None) if item.request_id else None
                self._screen.say(f"✗ {item.detail} ({item.code})", "red")
            case TurnEvent():
                self._event(item)
            case _:
                pass
        self._refresh()
        return refused

    def stopping(self) -> None:
        """The running turn was told to stop."""
        self._told_to_stop = self.running
        self._below.status = "stopping… (Ctrl-C again leaves)"

    def _ready(self, ready: Ready) -> None:
        self._lost = ""
        turns = (*((ready.active_turn,) if ready.active_turn else ()), *ready.queued)
        if not self._introduced:
            self._introduced = True
            self._introduce(turns)
        for turn in turns:
            # One of ours that is not accepted yet is sent again, and accepted then.
            if turn.turn_id not in self._open and turn.request_id not in self._sent:
                self._unsaid[turn.turn_id] = (turn.content, False)
                self._open[turn.turn_id] = Reply(turn.turn_id)
        known, self.questions = self.questions, {}
        for action in ready.confirmations:
            if action.action_id in known:
                self.questions[action.action_id] = action
            else:
                self._ask(action)

    def _introduce(self, turns: Sequence[QueuedTurn]) -> None:
        begun = {turn.turn_id for turn in turns}
        for message in self._past:
            if message.turn_id in begun:
                continue
            if message.role == "user":
                self._screen.user(message.text)
            else:
                self._screen.answer(message.text)
        for note in self._notes:
            self._screen.say(f"· {note}\n", "yellow")

    def _ask(self, action: PendingAction | AskConfirm) -> None:
        self.questions[action.action_id] = action
        self._screen.say(f"? {action.tool} wants to do this: {action.call}", "yellow")
        self._screen.say("  /allow or /refuse it.", "yellow")

    def _event(self, event: AnyTurnEvent) -> None:
        reply = self._open.get(event.turn_id)
        if reply is None:
            if event.attempt <= self._ended.get(event.turn_id, 0):
                return
            reply = self._open[event.turn_id] = Reply(event.turn_id)
        if not reply.apply(event):
            return
        if (unsaid := self._unsaid.pop(event.turn_id, None)) is not None:
            text, elsewhere = unsaid
            self._screen.user(text, elsewhere=elsewhere)
        match event:
            case Notice():
                if event.detail not in self._notes:
                    self._screen.say(f"· {words_of(event)}", "yellow")
            case ToolProgress(phase="done" | "failed"):
                mark = "✓" if event.phase == "done" else "✗"
                self._screen.say(f"{mark} {event.name} {event.detail}".rstrip(), "cyan")
            case _:
                self._flow(reply)
        if reply.ending is not None:
            self._end(reply)

    def _flow(self, reply: Reply) -> None:
        """Put finished blocks into the thread and the rest below it."""
        if self._showing != reply.turn_id:
            self._showing, self._shown = reply.turn_id, ""
        if not reply.text.startswith(self._shown):
            # What stands above cannot be taken back.
            self._screen.say("(begun again)")
            self._shown = ""
        rest = reply.text[len(self._shown) :]
        cut = len(rest) if reply.ending is not None else settled(rest)
        if rest[:cut].strip():
            self._below.answer = ""
            self._screen.answer(rest[:cut])
        self._shown += rest[:cut]
        self._below.answer = rest[cut:]

    def _end(self, reply: Reply) -> None:
        match reply.ending:
            case Cancelled():
                self._screen.say("(stopped)\n")
            case Interrupted():
                self._screen.say("(interrupted: the server was stopped; /retry tries again)\n")
            case TurnError() as error:
                again = " /retry tries again." if error.retry else ""
                self._screen.say(f"✗ {error.detail} ({error.code}){again}\n", "red")
            case _:
                pass
        self._below.answer = ""
        del self._open[reply.turn_id]
        self._ended[reply.turn_id] = reply.attempt
        if len(self._ended) > _MOST:
            del self._ended[next(iter(self._ended))]

    def _refresh(self) -> None:
        running = self._open.get(self.running) if self.running else None
        self._below.activity = tuple(running.tools.values()) if running else ()
        own = tuple(text for text in self._sent.values() if text is not None)
        self._below.waiting = (*(text for text, _ in self._unsaid.values()), *own)
        if self._lost:
            self._below.status = self._lost
        elif running is None and not self._sent:
            self._below.status = ""
        elif not self._below.status.startswith("stopping") or self._told_to_stop != self.running:
            self._below.status = "answering… (Ctrl-C stops it)"
