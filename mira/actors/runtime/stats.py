"""What the engine counts. Cheap enough to be always on."""

from __future__ import annotations

import msgspec

#: Upper bounds of the latency buckets, in seconds: 1 µs, 2 µs, 4 µs, … about 18 minutes.
LATENCY_BOUNDS = tuple(2.0**n / 1e6 for n in range(31))


class KindStats(msgspec.Struct, kw_only=True):
    """One kind of actor since the start."""

    #: Addresses that are alive now.
    active: int = 0
    #: Messages whose handler was begun.
    handled: int = 0
    #: Handlers and loads that raised what is not a MiraError.
    failed: int = 0
    #: Messages that were taken back, timed out or refused before they were begun.
    dropped: int = 0
    #: The longest that a mailbox has been.
    queue_high: int = 0
    #: Seconds spent in handlers, waiting included.
    busy_seconds: float = 0.0
    #: Answered asks by the time from sending to answer; see LATENCY_BOUNDS.
    ask_latency: list[int] = msgspec.field(default_factory=lambda: [0] * 32)

    def latency(self, quantile: float) -> float | None:
        """Seconds within which that share of asks was answered, to a factor of two."""
        total = sum(self.ask_latency)
        if not total:
            return None
        seen = 0
        for bound, count in zip(LATENCY_BOUNDS, self.ask_latency, strict=False):
            seen += count
            if seen >= quantile * total:
                return bound
        return LATENCY_BOUNDS[-1]


class JobStats(msgspec.Struct, kw_only=True):
    """One kind of job since the start."""

    running: int = 0
    waiting: int = 0
    ended: int = 0
    failed: int = 0
    cancelled: int = 0


class DurableStats(msgspec.Struct, kw_only=True):
    """Durable messages since the start."""

    in_flight: int = 0
    delivered: int = 0
    done: int = 0
    backed_off: int = 0
    buried: int = 0
    polls: int = 0


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """All counts at one moment; the engine does not change them afterwards."""

    kinds: dict[str, KindStats]
    jobs: dict[str, JobStats]
    durable: DurableStats
