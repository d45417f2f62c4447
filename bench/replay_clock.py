"""A clock that runs as the machine's does, and is put forward to what comes next."""

from __future__ import annotations

from datetime import datetime, timedelta

from mira.clock import SystemClock


class ReplayClock(SystemClock):
    """Seconds pass as usual, so that what takes time is measured; the date is that of the chat."""

    def __init__(self) -> None:
        self._ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self._ahead

    def start(self, moment: datetime) -> None:
        """Begin at a moment, past or future, before anything has read this clock."""
        self._ahead = moment - super().now()

    def go_to(self, moment: datetime) -> None:
        """Go forward to a moment; one that is over leaves the clock as it is."""
        self._ahead += max(timedelta(), moment - self.now())
