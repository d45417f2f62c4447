"""One request on its way through a chain of providers: attempts, deadlines, failover, books."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import msgspec

from mira.clock import Clock
from mira.errors import (
    ContextOverflow,
    MiraError,
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


class Run:
    """One request on its way through the chain."""

    def __init__(
        self,
        chain: Sequence[Provider],
        request: Request,
        *,
        policy: Policy,
        health: Health,
        clock: Clock,
        ids: Ids,
        watch: Watch,
    ) -> None:
        self._chain = chain
        self._request = request
        self._policy = policy
        self._health = health
        self._clock = clock
        self._ids = ids
        self._watch = watch
        self._began = clock.monotonic()
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
        resting = [p for p in self._chain if not self._ready(p)]
        # Those that rest are still better than no answer at all.
        order = [*(p for p in self._chain if p not in resting), *resting]
        left: tuple[str, str] | None = None
        if order[0] is not self._chain[0]:
            left = (self._chain[0].name, "it rests after an outage")
        for position, provider in enumerate(order):
            last = position == len(order) - 1
            if not last and provider not in resting and not await self._usable(provider):
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

    def _ready(self, provider: Provider) -> bool:
        """Whether a provider is well, or has rested long enough to be probed."""
        return self._health.well(provider.name) or self._health.may_probe(provider.name)

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
        delay = self._ids.uniform(longest / 2, longest)
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
        watch = self._watch
        try:
            # One guard for all items: one for each would cost more than everything else here. It
            # rests while an item is with the consumer.
            with watch.guard():
                watch.until(due)
                async with provider.stream(self._request) as items:
                    while True:
                        watch.until(due)
                        item = await anext(items, None)
                        watch.rest()
                        if item is None:
                            break
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
        except MiraError as error:
            code = error.code
            raise
        except Exception:
            code = MiraError.code
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
