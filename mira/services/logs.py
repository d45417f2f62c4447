"""Log files that child processes write and that cannot grow without bound."""

from __future__ import annotations

import os
from pathlib import Path

#: A log is set aside when it is larger than this, and one earlier piece is kept.
LIMIT = 2 * 1024 * 1024


class LogFile:
    """A file (mode 0600) that a child appends to; at most about twice `limit` bytes on disk.

    Children hold the file open in append mode, so it may be emptied under them: lines written
    in the instant between the copy and the emptying are lost, and none is torn.
    """

    def __init__(self, path: Path, limit: int = LIMIT) -> None:
        self.path = path
        self._limit = limit

    def open(self) -> int:
        """Return a descriptor to hand to a child. The caller closes it."""
        self.trim()
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)

    def size(self) -> int:
        """Return the bytes written so far; 0 when there is no file."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def trim(self) -> None:
        """Move the content to `<name>.1`, replacing what stood there, if it is over the limit."""
        if self.size() <= self._limit:
            return
        aside = self.path.with_name(self.path.name + ".1")
        with self.path.open("rb+") as now:
            now.seek(-self._limit, os.SEEK_END)
            kept = now.read()
            descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as old:
                old.write(kept)
            now.truncate(0)

    def since(self, offset: int, limit: int = 2000) -> str:
        """Return the text written after `offset`, at most its last `limit` bytes."""
        try:
            with self.path.open("rb") as file:
                file.seek(offset)
                return file.read()[-limit:].decode("utf-8", "replace").strip()
        except FileNotFoundError:
            return ""
