"""Running what waits: from a plain command into the event loop and back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from mira.settings import Settings, load

T = TypeVar("T")


def ask(question: Callable[[Settings], Awaitable[T]]) -> T:
    """Read the settings and run `question` to its end."""
    return anyio.run(question, load())


def quieten(settings: Settings) -> None:
    """Set up the log for parts of the house that are used without a server.

    On the command line errors are told in sentences; the log is for whoever asks for it with
    MIRA_LOG_LEVEL=debug.
    """
    from mira.telemetry import configure

    configure("debug" if settings.log_level == "debug" else "error")
