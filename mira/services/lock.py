"""One process per home: a lock that the kernel releases when its holder dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from mira.errors import StartupRefused


class HomeLock:
    """An exclusive lock on a file, held until `release` or the end of the process."""

    def __init__(self, path: Path) -> None:
        """Take the lock at `path`, making the file (0600) if need be.

        Raises StartupRefused, naming the process that holds it.
        """
        self.path = path
        self._descriptor: int | None = None
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            who = f"process {holder}" if holder.isdigit() else "another process"
            raise StartupRefused(
                f"Another MIRA ({who}) is using {path.parent}.",
                "Stop it first, or set MIRA_HOME to another directory.",
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def release(self) -> None:
        """Give the lock up. Idempotent. The file stays: removing it would invite a race."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
