"""The interactive conversation: what is heard is shown, what is typed is done."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID

import anyio
import anyio.lowlevel

from mira.cli.chat import reports, slash
from mira.cli.chat.giving import Given, give
from mira.cli.chat.keys import Key, KeyReader
from mira.cli.chat.line import Line
from mira.cli.chat.screen import Screen
from mira.cli.chat.thread import Thread
from mira.cli.http import Http
from mira.cli.output import one_line
from mira.clock import Clock
from mira.errors import MiraError
from mira.messages.wire import Accepted, Cancel, Confirm, FrameError, Retry

#: Seconds between two paintings, at least.
_PAINT_EVERY = 1 / 15
INTERRUPTED = 130


class Talk:
    """One sitting at the terminal.

    Ctrl-C stops the running answer; pressed again before it has stopped, or when nothing runs and
    nothing is typed, it leaves.
    """

    def __init__(
        self, line: Line, thread: Thread, screen: Screen, http: Http, clock: Clock
    ) -> None:
        self._line = line
        self._thread = thread
        self._screen = screen
        self._editor = screen.below.editor
        self._http = http
        self._clock = clock
        self._dirty = anyio.Event()
        self._leaving = anyio.CancelScope()
        self._exit_code = 0
        #: The turn that was told to stop; or that the next one accepted shall stop.
        self._stopping: UUID | None = None
        self._stop_next = False
        #: Files that go with the next message, and how many are on their way to it.
        self._attached: list[Given] = []
        self._coming = 0
        #: Words and files of messages that are not accepted yet.
        self._going: dict[str, tuple[str, list[Given]]] = {}

    async def run(self) -> int:
        """Until the person leaves; returns the exit code."""
        with self._screen.running():
            async with anyio.create_task_group() as tasks:
                self._tasks, self._leaving = tasks, tasks.cancel_scope
                tasks.start_soon(self._keep_line)
                tasks.start_soon(self._hear)
                tasks.start_soon(self._type)
                tasks.start_soon(self._watch_signals)
                tasks.start_soon(self._paint)
        return self._exit_code

    # What the commands do.

    @property
    def asked(self) -> bool:
        return bool(self._thread.questions)

    def say(self, text: str) -> None:
        self._screen.say(text)

    def leave(self, exit_code: int = 0) -> None:
        self._exit_code = exit_code
        self._leaving.cancel()

    async def show_status(self) -> None:
        for text in await reports.status(self._http):
            self.say(text)

    async def show_models(self) -> None:
        for text in await reports.models(self._http):
            self.say(text)

    async def cancel(self) -> None:
        running = self._thread.running
        if running is not None:
            self._stopping = running
            await self._line.order(Cancel(turn_id=running))
        elif self._thread.unaccepted:
            self._stop_next = True
        else:
            self.say("Nothing is running.")
            return
        self._thread.stopping()

    async def retry(self) -> None:
        newest = await reports.newest_turn(self._http)
        if newest is None:
            self.say("Nothing was said yet.")
        else:
            # Its new attempt was not told to stop.
            self._stopping = None
            await self._line.order(Retry(turn_id=newest))

    async def steer(self, act: slash.Steering) -> None:
        self.say(await reports.steer(self._http, act))

    async def decide(self, allow: bool) -> None:
        action_id = next(iter(self._thread.questions))
        await self._line.order(Confirm(action_id=action_id, allow=allow))
        del self._thread.questions[action_id]

    async def attach(self, path: str) -> None:
        self._coming += 1
        try:
            given = await give(self._http, Path(path))
        finally:
            self._coming -= 1
        self._attached.append(given)
        self.say(f"{one_line(given.name, 60)} goes with your next message.")

    def detach(self) -> None:
        self.say("No file goes with your next message." if self._attached else "None was to go.")
        self._attached.clear()

    # What goes on.

    async def _keep_line(self) -> None:
        await self._line.run()

    async def _hear(self) -> None:
        async for item in self._line.items:
            refused = self._thread.hear(item)
            if isinstance(item, Accepted):
                self._going.pop(item.request_id, None)
            elif isinstance(item, FrameError) and item.request_id in self._going:
                # Files go with the next message then, and so do the words, if none are typed yet.
                words, files = self._going.pop(item.request_id)
                self._attached[:0] = files
                if refused is not None and not self._editor.text:
                    self._editor.set(words)
            if isinstance(item, Accepted) and self._stop_next:
                self._stop_next = False
                await self._guarded(self.cancel)
            self._dirty.set()

    async def _type(self) -> None:
        reader, terminal = KeyReader(), sys.stdin.fileno()
        while True:
            await anyio.wait_readable(terminal)
            raw = os.read(terminal, 65536)
            if not raw:
                self.leave()
                return
            for key in reader.feed(raw):
                await self._press(key)
            self._dirty.set()

    async def _press(self, key: Key) -> None:
        if key.name == "eof" and not self._editor.text:
            self.leave()
        elif key.name == "redraw":
            self._screen.clear()
        elif (entered := self._editor.press(key)) is not None and (
            # A file may go without words.
            entered.strip() or self._attached
        ):
            await self._entered(entered)

    async def _entered(self, entered: str) -> None:
        message = slash.message_of(entered)
        if message is None:
            # Beside the typing, which does not wait for a server that does not answer.
            self._tasks.start_soon(self._guarded, lambda: slash.run(entered, self))
            # It has begun before what was typed after it.
            await anyio.lowlevel.checkpoint()
        elif self._coming:
            self._editor.set(entered)
            self.say("A file is still on its way. Press Enter again when it has come.")
        else:
            # Shown first: the answer may come while the message is still being sent.
            request_id = self._line.new_request()
            files, self._attached = self._attached, []
            self._going[request_id] = message, files
            names = ", ".join(one_line(one.name, 60) for one in files)
            self._thread.sent(request_id, f"{message}\n[{names}]".strip() if files else message)
            await self._line.say(message, request_id, tuple(one.id for one in files))

    async def _watch_signals(self) -> None:
        with anyio.open_signal_receiver(
            signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, signal.SIGWINCH
        ) as signals:
            async for number in signals:
                if number == signal.SIGINT:
                    await self._interrupted()
                elif number == signal.SIGTSTP:
                    self._screen.suspend()
                elif number != signal.SIGWINCH:
                    self.leave(128 + number)
                self._dirty.set()

    async def _interrupted(self) -> None:
        running = self._thread.running
        busy = running is not None or self._thread.unaccepted
        told = self._stop_next if running is None else running == self._stopping
        if busy and not told:
            await self._guarded(self.cancel)
        elif not busy and self._editor.text:
            self._editor.clear()
        else:
            self.leave(INTERRUPTED)

    async def _guarded(self, do: Callable[[], Awaitable[None]]) -> None:
        """Do it; a failure is told and ends nothing."""
        try:
            await do()
        except MiraError as error:
            self._screen.say(f"✗ {error.detail} ({error.code})", "red")
        self._dirty.set()

    async def _paint(self) -> None:
        while True:
            await self._dirty.wait()
            self._dirty = anyio.Event()
            self._screen.paint()
            await self._clock.sleep(_PAINT_EVERY)
