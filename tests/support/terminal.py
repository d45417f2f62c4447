"""A program in a pseudo-terminal, and what a person in front of it would see."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.cells import cell_len

_CSI = re.compile(r"\x1b\[([0-9;?]*)([ -/]*[@-~])")
_OSC = re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")


class Emulator:
    """The part of a terminal that chat programs use; it remembers what scrolled away."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._rows: list[list[str]] = [[]]
        self._row = self._column = 0
        self._rest = ""

    @property
    def text(self) -> str:
        """What can be seen, by scrolling too."""
        return "\n".join("".join(row).rstrip() for row in self._rows).rstrip()

    def feed(self, output: str) -> None:
        self._rest += output
        while self._rest:
            if self._rest[0] == "\x1b":
                match = _CSI.match(self._rest) or _OSC.match(self._rest)
                if match is None:
                    return
                self._rest = self._rest[match.end() :]
                if match.re is _CSI:
                    self._control(match.group(1), match.group(2))
                continue
            character, self._rest = self._rest[0], self._rest[1:]
            if character == "\r":
                self._column = 0
            elif character == "\n":
                self._down()
            elif character == "\b":
                self._column = max(0, self._column - 1)
            elif character >= " ":
                self._put(character)

    def _put(self, character: str) -> None:
        cells = cell_len(character)
        if self._column + cells > self._width:
            self._down()
            self._column = 0
        row = self._rows[self._row]
        row.extend(" " * (self._column + cells - len(row)))
        row[self._column] = character
        if cells == 2:
            row[self._column + 1] = ""
        self._column += cells

    def _down(self) -> None:
        self._row += 1
        if self._row == len(self._rows):
            self._rows.append([])

    def _control(self, parameters: str, final: str) -> None:
        count = int(parameters) if parameters.isdigit() else 0
        match final:
            case "A":
                self._row = max(0, self._row - max(1, count))
            case "K" if count == 2:
                self._rows[self._row].clear()
            case "K":
                del self._rows[self._row][self._column :]
            case _:
                pass


class Terminal:
    """Runs `command` in a pseudo-terminal of its own. A context manager that leaves nothing."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        width: int = 80,
        directory: Path | None = None,
    ) -> None:
        self._emulator = Emulator(width)
        self._main, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
        self.mode_before = termios.tcgetattr(child)
        self._child = child
        self.raw = ""
        self.process = subprocess.Popen(
            command,
            cwd=directory,
            env={**environment, "TERM": "xterm-256color"},
            stdin=child, stdout=child, stderr=child,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0) and None,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)
        os.close(self._main)
        os.close(self._child)

    @property
    def text(self) -> str:
        """What can be seen now."""
        self._read(0)
        return self._emulator.text

    @property
    def mode(self) -> list[object]:
        """How the terminal is set now."""
        return termios.tcgetattr(self._child)

    def type(self, text: str) -> None:
        """Type `text`; "\\r" is Enter, "\\x03" Ctrl-C, "\\x04" Ctrl-D."""
        os.write(self._main, text.encode())

    def wait_for(self, *wanted: str, gone: str = "", within: float = 30.0) -> str:
        """Wait until all of `wanted` can be seen, and `gone` cannot; return what can be seen."""
        until = time.monotonic() + within
        while True:
            seen = self.text
            if all(w in seen for w in wanted) and not (gone and gone in seen):
                return seen
            if time.monotonic() >= until:
                raise AssertionError(f"{wanted} did not come; what can be seen:\n{seen}")
            if self.process.poll() is not None and not self._read(0.2):
                raise AssertionError(f"it ended ({self.process.returncode}):\n{self.text}")
            self._read(0.2)

    def wait_end(self, within: float = 20.0) -> int:
        """Wait until the program ends; return its exit code."""
        until = time.monotonic() + within
        while self.process.poll() is None:
            self._read(0.05)
            assert time.monotonic() < until, f"it does not end:\n{self._emulator.text}"
        self._read(0)
        return self.process.returncode

    def _read(self, wait: float) -> bool:
        found = False
        while select.select([self._main], [], [], 0 if found else wait)[0]:
            try:
                raw = os.read(self._main, 65536)
            except OSError:
                return found
            found = True
            text = raw.decode("utf-8", "replace")
            self.raw += text
            self._emulator.feed(text)
        return found
