"""What the terminal shows: the thread, which stays, and below it what changes."""

from __future__ import annotations

import os
import signal
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text

from mira.cli.chat.editor import Editor
from mira.cli.output import one_line, printable

_Mode: TypeAlias = list[Any]
_PROMPT = "› "
_PASTE_ON, _PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"
#: Rows of the line being typed that are shown at once.
_EDITOR_ROWS = 8


@dataclass
class Below:
    """What changes below the thread: the end of the answer, activity, a status, the line."""

    editor: Editor
    answer: str = ""
    waiting: Sequence[str] = ()
    activity: Sequence[str] = ()
    status: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        foot = list(self._foot(options.max_width))
        if self.answer:
            room = max(1, console.height - len(foot) - 1)
            rows = console.render_lines(markdown(self.answer), options, pad=False)
            for row in rows[-room:]:
                yield from row
                yield Segment.line()
        foot[-1].end = ""
        yield from foot

    def _foot(self, width: int) -> Iterator[Text]:
        for text in self.activity:
            yield _row(f"⚙ {text}", "cyan")
        for text in self.waiting:
            yield _row(f"waiting: {text}", "dim")
        if self.status:
            yield _row(self.status, "dim")
        rows, at, index = self.editor.rows(width - len(_PROMPT))
        first = max(0, min(at - _EDITOR_ROWS + 1, len(rows) - _EDITOR_ROWS))
        for number, row in enumerate(rows[first : first + _EDITOR_ROWS], first):
            line = Text(_PROMPT if number == 0 else " " * len(_PROMPT), style="bold")
            line.append(row + " ", style="not bold")
            if number == at:
                line.stylize("reverse", len(_PROMPT) + index, len(_PROMPT) + index + 1)
            yield line


class Screen:
    """Prints the thread and keeps `below` painted under it, inside `running`."""

    def __init__(self, console: Console, below: Below) -> None:
        self.console = console
        self.below = below
        self._live = Live(
            below, console=console, auto_refresh=False, transient=True,
            vertical_overflow="crop", redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        self._terminal = sys.stdin.fileno()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Take the terminal over, and give it back as it was."""
        before = termios.tcgetattr(self._terminal)
        self._take()
        try:
            yield
        finally:
            self._give(before)

    def suspend(self) -> None:
        """Give the terminal back, stop this process as Ctrl-Z does, and go on when continued."""
        usual = termios.tcgetattr(self._terminal)
        usual[3] |= termios.ICANON | termios.ECHO
        self._give(usual)
        os.kill(os.getpid(), signal.SIGSTOP)
        self._take()

    def paint(self) -> None:
        """Show `below` as it is now."""
        self._live.refresh()

    def user(self, text: str, *, elsewhere: bool = False) -> None:
        """What the user said, here or on another device."""
        mark = Text(_PROMPT, style="bold")
        mark.append(printable(text), style="bold")
        if elsewhere:
            mark.append("  (from another device)", style="dim not bold")
        self._print(mark)
        self._print("")

    def answer(self, text: str) -> None:
        """A finished part of what MIRA says."""
        self._print(markdown(text))
        self._print("")

    def say(self, text: str, style: str = "dim") -> None:
        """A line beside the conversation."""
        self._print(Text(printable(text), style=style))

    def clear(self) -> None:
        self.console.clear()

    def _print(self, what: RenderableType) -> None:
        self.console.print(what, highlight=False, markup=False, emoji=False)

    def _take(self) -> None:
        mode = termios.tcgetattr(self._terminal)
        # Keys come one by one and are not echoed; Ctrl-C and Ctrl-Z still make signals.
        mode[3] &= ~(termios.ICANON | termios.ECHO)
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._terminal, termios.TCSADRAIN, mode)
        self.console.file.write(_PASTE_ON)
        self._live.start(refresh=True)

    def _give(self, mode: _Mode) -> None:
        self._live.stop()
        self.console.file.write(_PASTE_OFF)
        self.console.file.flush()
        termios.tcsetattr(self._terminal, termios.TCSADRAIN, mode)


def _row(text: str, style: str) -> Text:
    """One row, however long: the room for the answer is counted in rows."""
    return Text(one_line(text), style=style, no_wrap=True, overflow="ellipsis")


def markdown(text: str) -> RenderableType:
    """What a model wrote, laid out. Links show where they lead."""
    laid_out = Markdown(printable(text), code_theme="ansi_dark", hyperlinks=False)
    return Padding(laid_out, (0, 0))
