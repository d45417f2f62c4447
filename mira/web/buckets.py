"""Rate limits: a token bucket per key, shared through Valkey, kept in process when it is away."""

from __future__ import annotations

from collections import OrderedDict
from functools import partial

from mira.clock import Clock
from mira.errors import RateLimited
from mira.store import rate
from mira.store.cache import Cache

#: Tokens fetched at once, so that a busy key costs one call of Valkey in so many requests.
_LEASE = 16
#: Keys remembered in this process.
_MOST = 4096


class TokenBucket:
    """`capacity` at once, `rate` a second from then on."""

    __slots__ = ("_at", "_tokens", "capacity", "rate")

    def __init__(self, rate: float, capacity: float, now: float) -> None:
        self.rate = rate
        self.capacity = capacity
        self._tokens = capacity
        self._at = now

    def take(self, now: float) -> float:
        """Take one token: 0.0 if there was one, else the seconds until there is."""
        self._tokens = min(self.capacity, self._tokens + (now - self._at) * self.rate)
        self._at = now
        if self._tokens >= 1.0:
            self._tokens -= 1.0
            return 0.0
        return (1.0 - self._tokens) / self.rate


class RateLimiter:
    """One bucket for each name. With Valkey away each process counts for itself."""

    def __init__(self, cache: Cache, clock: Clock, *, rate: float, burst: float) -> None:
        self._cache = cache
        self._clock = clock
        self._rate = rate
        self._burst = burst
        self._leased: OrderedDict[str, int] = OrderedDict()
        self._local: OrderedDict[str, TokenBucket] = OrderedDict()

    async def take(self, name: str) -> None:
        """Count one request against `name`. Raises RateLimited with the time to wait."""
        left = self._leased.get(name, 0)
        if left > 0:
            self._leased[name] = left - 1
            return
        wait = await self._fetch(name)
        if wait > 0.0:
            raise RateLimited("Too many requests with this key.", retry_after=wait)

    async def _fetch(self, name: str) -> float:
        grant = await self._cache.call(
            partial(rate.take, bucket=name, rate=self._rate, capacity=self._burst, wanted=_LEASE),
            None,
            what="rate",
        )
        if grant is None:
            return self._in_process(name)
        if grant.tokens == 0:
            return max(grant.wait, 0.001)
        # Others may have fetched for the same name meanwhile: add to what they left.
        self._leased[name] = self._leased.get(name, 0) + grant.tokens - 1
        self._leased.move_to_end(name)
        if len(self._leased) > _MOST:
            self._leased.popitem(last=False)
        return 0.0

    def _in_process(self, name: str) -> float:
        now = self._clock.monotonic()
        bucket = self._local.get(name)
        if bucket is None:
            bucket = self._local[name] = TokenBucket(self._rate, self._burst, now)
            if len(self._local) > _MOST:
                self._local.popitem(last=False)
        else:
            self._local.move_to_end(name)
        return bucket.take(now)
