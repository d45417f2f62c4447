"""Finds out who listens on a port, from what the kernel shows in /proc."""

from __future__ import annotations

import os
from pathlib import Path

_LISTEN = "0A"


def listener(port: int) -> str | None:
    """Return "<program> (process <pid>)" for who listens on TCP `port`; None if it is hidden.

    Other users' processes are visible to root only.
    """
    sockets = {f"socket:[{inode}]" for inode in _inodes(port)}
    if not sockets:
        return None
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            if any(os.readlink(fd) in sockets for fd in (process / "fd").iterdir()):
                return f"{(process / 'comm').read_text().strip()} (process {process.name})"
        except OSError:
            continue  # It ended meanwhile, or is another user's.
    return None


def _inodes(port: int) -> set[str]:
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                found.add(fields[9])
    return found
