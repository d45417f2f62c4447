"""From providers that fail to answers: retries, time-outs, failover, books.

This is the only retry layer; those of the SDKs are off. (stamina, which would do for the
back-off, keeps its own time and its own chance, so that no test could move either.)
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

import anyio
import msgspec

from mira.clock import Clock
from mira.errors import (
    ContextOverflow,
    ProviderError,
    ProviderMalformed,
    ProviderOutage,
    ProviderRejected,
)
from mira.ids import Ids
from mira.llm.base import (
    CallRecord,
    Dropped,
    Finished,
    Metered,
    Progress,
    Provider,
    Request,
    Retrying,
    StreamItem,
    Switched,
)
from mira.llm.health import Health
from mira.llm.text import estimated_input
from mira.llm.watch import Stalled, Watch
from mira.messages.turn import Usage
from mira.telemetry import logger

_log = logger("llm")
#: Seconds in which a stream that is left must be closed.
_CLOSE = 5.0
#: Refusals that concern the account or the model, not the request: another provider may answer.
_NOT_THE_REQUEST = frozenset({401, 402, 403, 404, 429})


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait for what, in seconds, and how often to try."""

    first_token: float = 60.0
    stall: float = 30.0
    probe: float = 5.0
    #: Calls made of one provider before it is given up, the first included.
    attempts: int = 3
    #: Back-off before the second call, doubled before each that follows, up to the longest.
    back_off: float = 0.5
    longest_back_off: float = 8.0
    #: The longest Retry-After that is waited for: where another provider is left, and where none.
    patience: float = 5.0
    last_patience: float = 30.0
    #: No retry begins later than this after the first call.
    total: float = 120.0


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
        clock: Clock,
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
        policy = self._policy
        watch = Watch(self._clock, min(policy.first_token, policy.stall, policy.probe))
        run = _Run(self, request, watch)
        items = run.items()
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch.run)
            try:
                yield Routed(items, run.calls)
            except Exception as error:
                failure = error  # raised below: the task group would wrap it
            finally:
                with anyio.move_on_after(_CLOSE, shield=True):
                    await items.aclose()
                tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    # What a run needs to know.

    def _plan(self) -> tuple[list[Provider], list[Provider]]:
        """Who is asked in order, and who is skipped for now: those that rest."""
        well = [p for p in self.chain if self._health.well(p.name)]
        due = [p for p in self.chain if self._health.may_probe(p.name)]
        ready = [p for p in self.chain if p in well or p in due]
        return ready, [p for p in self.chain if p not in ready]


class _Run:
    """One request on its way through the chain."""

    def __init__(self, routing: Routing, request: Request, watch: Watch) -> None:
        self._routing = routing
        self._policy = routing._policy
        self._clock = routing._clock
        self._health = routing._health
        self._request = request
        self._watch = watch
        self._began = self._clock.monotonic()
        self.calls: list[CallRecord] = []

    async def items(self) -> AsyncGenerator[StreamItem, None]:
        try:
            async with aclosing(self._through_chain()) as items:
                async for item in items:
                    yield item
        except ProviderError as error:
            error.calls = tuple(self.calls)
            raise

    async def _through_chain(self) -> AsyncGenerator[StreamItem, None]:
        ready, resting = self._routing._plan()
        # Those that rest are still better than no answer at all.
        order = [*ready, *resting]
        left: tuple[str, str] | None = None
        if resting and order[0] is not self._routing.chain[0]:
            left = (self._routing.name, "it rests after an outage")
        for position, provider in enumerate(order):
            last = position == len(order) - 1
            if not last and provider in ready and not await self._usable(provider):
                left = left or (provider.name, "it does not answer yet")
                continue
            if left is not None:
                _log.warning("model_switched", source=left[0], target=provider.name)
                yield Switched(left[0], provider.name, left[1])
            try:
                async with aclosing(self._retried(provider, alone=last)) as items:
                    async for item in items:
                        yield item
                return
            except ProviderError as error:
                if isinstance(error, ContextOverflow):
                    raise
                about_request = (
                    isinstance(error, ProviderRejected)
                    and error.http_status not in _NOT_THE_REQUEST
                )
                if about_request:
                    raise
                if len(order) > 1:
                    self._health.failed(provider.name)
                if last:
                    raise
                left = (provider.name, error.detail)

    async def _usable(self, provider: Provider) -> bool:
        """Whether a provider that may have recovered has: asked before it is trusted again."""
        name = provider.name
        if self._health.well(name):
            return True
        if not self._health.may_probe(name):
            return False
        self._health.probing(name, now=True)
        try:
            await self._watch.wait(provider.probe(), self._clock.monotonic() + self._policy.probe)
        except (ProviderError, Stalled):
            self._health.failed(name)
            return False
        finally:
            self._health.probing(name, now=False)
        self._health.answered(name)
        return True

    async def _retried(
        self, provider: Provider, *, alone: bool
    ) -> AsyncGenerator[StreamItem, None]:
        attempt = 0
        malformed = refreshed = False
        while True:
            attempt += 1
            try:
                async with aclosing(self._called(provider)) as items:
                    async for item in items:
                        yield item
                self._health.answered(provider.name)
                return
            except ProviderOutage as error:
                delay = self._delay(attempt, error, alone=alone)
                if delay is None:
                    raise
                failed: ProviderError = error
            except ProviderMalformed as error:
                if malformed:
                    raise
                malformed, delay, failed = True, 0.0, error
            except ProviderRejected as error:
                # The key may have been set or changed since it was read.
                if error.http_status != 401 or refreshed or not await provider.refresh():
                    raise
                refreshed, delay, failed = True, 0.0, error
            _log.info("model_retried", model=provider.name, code=type(failed).__name__, delay=delay)
            yield Retrying(provider.name, failed.detail, delay)
            await self._clock.sleep(delay)

    def _delay(self, attempt: int, error: ProviderOutage, *, alone: bool) -> float | None:
        """Seconds to wait before the next call of this provider; None to give it up."""
        policy = self._policy
        if attempt >= policy.attempts:
            return None
        longest = min(policy.longest_back_off, policy.back_off * 2 ** (attempt - 1))
        delay = self._routing._ids.uniform(longest / 2, longest)
        if error.retry_after is not None:
            if error.retry_after > (policy.last_patience if alone else policy.patience):
                return None
            # Never sooner than asked, and not all at the same moment.
            delay = error.retry_after + delay / 4
        if self._clock.monotonic() + delay - self._began > policy.total:
            return None
        return delay

    async def _called(self, provider: Provider) -> AsyncGenerator[StreamItem, None]:
        """One physical call, recorded however it ends."""
        began = self._clock.monotonic()
        due = began + self._policy.first_token
        first: float | None = None
        usage: Usage | None = None
        code: str | None = "cancelled"
        try:
            async with AsyncExitStack() as stack:
                opening = stack.enter_async_context(provider.stream(self._request))
                items = await self._watch.wait(opening, due)
                while (item := await self._watch.wait(anext(items, None), due)) is not None:
                    if isinstance(item, Metered):
                        usage = item.usage
                        continue
                    if isinstance(item, Dropped):
                        yield item
                        continue
                    if first is None:
                        first = self._clock.monotonic()
                    if isinstance(item, Finished):
                        usage, code = item.usage, None
                        self._record(provider, usage, began, first, None)
                        yield msgspec.structs.replace(item, calls=tuple(self.calls))
                        return
                    if not isinstance(item, Progress):
                        yield item
                    due = self._clock.monotonic() + self._policy.stall
            raise ProviderOutage(
                f"{provider.name} ended without an answer.", provider=provider.name
            )
        except Stalled:
            code = ProviderOutage.code
            what = "did not begin to answer in time" if first is None else "stalled in its answer"
            raise ProviderOutage(f"{provider.name} {what}.", provider=provider.name) from None
        except ProviderError as error:
            code = error.code
            raise
        finally:
            if code is not None:
                self._record(provider, usage, began, first, code)

    def _record(
        self,
        provider: Provider,
        usage: Usage | None,
        began: float,
        first: float | None,
        code: str | None,
    ) -> None:
        if usage is None:
            usage = Usage(
                input_tokens=estimated_input(self._request) if first is not None else 0,
                calls=1,
                reported=False,
            )
        maker, _, model = provider.name.partition(":")
        self.calls.append(
            CallRecord(
                provider=maker,
                model=model,
                usage=usage,
                first_event_ms=None if first is None else (first - began) * 1000,
                total_ms=(self._clock.monotonic() - began) * 1000,
                error=code,
            )
        )
