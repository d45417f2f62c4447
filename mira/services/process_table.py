"""Who runs on this machine, by the kernel's own table in /proc."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def processes(matches: Callable[[Path], bool], program: str | None = None) -> list[int]:
    """Return the ids of the living processes whose /proc directory `matches`.

    `program` narrows them to those that are called so. Takes milliseconds: not for the thread of
    an event loop. A process that is dead and merely not yet looked at by its parent is not
    living.
    """
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if (
                (program is None or (entry / "comm").read_text().strip() == program)
                and _stat(entry)[0] not in ("Z", "X")
                and matches(entry)
            ):
                found.append(int(entry.name))
        except OSError:
            continue  # It ended meanwhile, or is another user's and none of our affair.
    return found


def working_in(*directories: Path) -> Callable[[Path], bool]:
    """Match processes whose working directory is one of `directories`."""
    names = {str(directory) for directory in directories}
    return lambda entry: os.readlink(entry / "cwd") in names


def in_group(group: int) -> Callable[[Path], bool]:
    """Match the processes of the process group `group`."""
    return lambda entry: _stat(entry)[2] == str(group)


def _stat(entry: Path) -> list[str]:
    """State, parent, process group and so on: what stands after the name, which may hold any."""
    return (entry / "stat").read_text().rpartition(")")[2].split()
