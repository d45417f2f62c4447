"""Running what waits: from a plain command into the event loop and back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from mira.settings import Settings, load
from mira.telemetry import configure

T = TypeVar("T")


def ask(question: Callable[[Settings], Awaitable[T]]) -> T:
    """Read the settings, quieten the log, run `question` to its end.

    On the command line errors are told in sentences; the log is for whoever asked for it with
    MIRA_LOG_LEVEL=debug.
    """
    settings = load()
    configure("debug" if settings.log_level == "debug" else "error")
    return anyio.run(question, settings)
