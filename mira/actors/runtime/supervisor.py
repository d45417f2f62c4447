"""How often an address may fail before it rests."""

from __future__ import annotations

import msgspec


class Intensity(msgspec.Struct, frozen=True):
    """More than `failures` in `seconds` quarantine an address.

    The first rest takes `rest` seconds; each further one twice as long, up to `longest`, until
    an address has kept well for `seconds` after a rest.
    """

    failures: int = 3
    seconds: float = 60.0
    rest: float = 5.0
    longest: float = 300.0


class Record:
    """The failures of one address. Made at its first."""

    __slots__ = ("_rests", "_times", "until")

    def __init__(self) -> None:
        self._times: list[float] = []
        self._rests = 0
        #: When the present or last rest ends; 0 if there was none.
        self.until = 0.0

    def resting(self, now: float) -> bool:
        return now < self.until

    def matters_for(self, now: float, allowed: Intensity) -> float:
        """Seconds for which this record must still be remembered."""
        latest = max(self.until, self._times[-1] if self._times else 0.0)
        return max(0.0, latest + allowed.seconds - now)

    def failed(self, now: float, allowed: Intensity) -> float | None:
        """Note a failure. Returns the seconds to rest if it was one too many."""
        self._times = [t for t in self._times if t > now - allowed.seconds]
        self._times.append(now)
        if len(self._times) <= allowed.failures:
            return None
        if now > self.until + allowed.seconds:
            self._rests = 0
        seconds = min(allowed.rest * 2.0 ** min(self._rests, 60), allowed.longest)
        self._rests += 1
        self._times.clear()
        self.until = now + seconds
        return seconds
