"""From providers that fail to answers: retries, time-outs, failover, books.

This is the only retry layer; those of the SDKs are off. (stamina, which would do for the
back-off, keeps its own time and its own chance, so that no test could move either.)
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager

from mira.clock import AlarmClock
from mira.ids import Ids
from mira.llm.base import CallRecord, Provider, Request, StreamItem
from mira.llm.health import Health
from mira.llm.run import Policy, Run
from mira.llm.watch import Watch

__all__ = ["Policy", "Routed", "Routing"]


class Routed(AsyncIterator[StreamItem]):
    """A stream of items, ended by Finished. `calls` are the calls made so far, in order."""

    def __init__(self, items: AsyncGenerator[StreamItem, None], calls: list[CallRecord]) -> None:
        self._items = items
        self._calls = calls

    @property
    def calls(self) -> tuple[CallRecord, ...]:
        return tuple(self._calls)

    async def __anext__(self) -> StreamItem:
        return await anext(self._items)


class Routing:
    """A chain of providers that answers as one: the first that can, does.

    Only outages are retried, and a malformed answer once. When a provider is given up, the next
    in the chain goes on (Switched), and the first one rests and is probed before it is used
    again. An overflow of the window, and a refusal of this very request, are raised at once.
    Whatever is raised is a ProviderError that carries the records of all calls in `calls`.
    """

    def __init__(
        self,
        chain: Sequence[Provider],
        clock: AlarmClock,
        ids: Ids,
        *,
        health: Health | None = None,
        policy: Policy | None = None,
    ) -> None:
        self.chain: tuple[Provider, ...] = ()
        self.use(chain)
        self._clock = clock
        self._ids = ids
        self._health = health or Health(clock)
        self._policy = policy or Policy()

    def use(self, chain: Sequence[Provider]) -> None:
        """Take another chain for the requests to come; those under way keep theirs."""
        if not chain:
            raise ValueError("a routing needs at least one provider")
        self.chain = tuple(chain)

    @property
    def name(self) -> str:
        """The first provider's name."""
        return self.chain[0].name

    @property
    def window(self) -> int:
        """The first provider's window, tokens."""
        return self.chain[0].window

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Routed]:
        """Answer a request. Leaving the context closes the connection at once.

        Must be entered and left by the same task.
        """
        watch = Watch(self._clock)
        run = Run(
            self.chain,
            request,
            policy=self._policy,
            health=self._health,
            clock=self._clock,
            ids=self._ids,
            watch=watch,
        )
        items = run.items()
        try:
            yield Routed(items, run.calls)
        finally:
            # No scope around it, since a guard (see Watch) may be open inside; a provider closes
            # its stream shielded and in bounded time.
            await items.aclose()
            watch.close()
