"""Which providers are resting after an outage, and when they may be tried again."""

from __future__ import annotations

import msgspec

from mira.clock import Clock

#: Seconds of rest after the first outage; doubled for each that follows without an answer between.
REST = 30.0
LONGEST_REST = 600.0


class _State(msgspec.Struct):
    until: float
    outages: int
    probing: bool = False


class Health:
    """Shared by all routings of a process, by the name of the provider.

    A provider without an entry is well. After an outage it rests; when the rest is over, one
    caller at a time may probe it, and until that succeeds it counts as resting for all others.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._states: dict[str, _State] = {}

    def well(self, name: str) -> bool:
        return name not in self._states

    def may_probe(self, name: str) -> bool:
        """Whether the rest is over and nobody else is probing."""
        state = self._states.get(name)
        return state is not None and not state.probing and self._clock.monotonic() >= state.until

    def probing(self, name: str, *, now: bool) -> None:
        """Say that a probe of `name` begins, or has ended."""
        if state := self._states.get(name):
            state.probing = now

    def answered(self, name: str) -> None:
        """The provider has answered: it is well."""
        self._states.pop(name, None)

    def failed(self, name: str) -> None:
        """The provider was given up for this time: let it rest."""
        state = self._states.get(name)
        outages = state.outages + 1 if state else 1
        rest = min(LONGEST_REST, REST * 2 ** (outages - 1))
        self._states[name] = _State(until=self._clock.monotonic() + rest, outages=outages)

    def forget(self) -> None:
        """Count every provider as well again: something about them has changed."""
        self._states.clear()
