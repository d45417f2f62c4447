"""Rate limits: shared through a real Valkey, kept in process without it."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
import valkey.asyncio

from mira.clock import ManualClock
from mira.errors import RateLimited
from mira.ids import SystemIds
from mira.store import rate
from mira.store.cache import Cache
from mira.web.buckets import RateLimiter, TokenBucket
from tests.services import TestServices

pytestmark = pytest.mark.anyio


def bucket() -> str:
    return str(SystemIds().new())


def client_of(services: TestServices) -> Any:
    return valkey.asyncio.from_url(services.valkey.url)  # type: ignore[no-untyped-call]


async def spend(limiter: RateLimiter, name: str, most: int = 1000) -> int:
    """How many requests are let through."""
    for count in range(most):
        try:
            await limiter.take(name)
        except RateLimited:
            return count
    return most


async def test_a_bucket_gives_what_it_holds_and_tells_when_there_is_more(
    services: TestServices,
) -> None:
    async with client_of(services) as client:
        name = bucket()
        first = await rate.take(client, name, rate=0.5, capacity=10, wanted=7)
        second = await rate.take(client, name, rate=0.5, capacity=10, wanted=7)
        third = await rate.take(client, name, rate=0.5, capacity=10, wanted=7)
        assert [first.tokens, second.tokens, third.tokens] == [7, 3, 0]
        assert 0 < third.wait <= 2.0
        assert await client.pttl(f"mira:rate:{name}") > 20_000


async def test_a_bucket_fills_again_with_time_up_to_what_it_holds(services: TestServices) -> None:
    async with client_of(services) as client:
        name = bucket()
        await rate.take(client, name, rate=1.0, capacity=5, wanted=5)
        # An hour ago, by the server's own clock.
        at = float(await client.hget(f"mira:rate:{name}", "at")) - 3600
        await client.hset(f"mira:rate:{name}", "at", str(at))
        full = await rate.take(client, name, rate=1.0, capacity=5, wanted=50)
        assert full.tokens == 5


async def test_racing_callers_never_get_more_than_there_is(services: TestServices) -> None:
    async with client_of(services) as client:
        name, granted = bucket(), []

        async def one() -> None:
            got = await rate.take(client, name, rate=0.001, capacity=40, wanted=3)
            granted.append(got.tokens)

        async with anyio.create_task_group() as tasks:
            for _ in range(30):
                tasks.start_soon(one)
    assert sum(granted) == 40


async def test_two_processes_share_one_limit(services: TestServices) -> None:
    clock, name = ManualClock(), bucket()
    first, second = (Cache(services.valkey.url, clock) for _ in "12")
    limiters = [RateLimiter(cache, clock, rate=0.001, burst=50) for cache in (first, second)]
    assert await spend(limiters[0], name) == 50
    assert await spend(limiters[1], name) == 0
    assert await spend(limiters[1], bucket()) == 50
    await first.aclose()
    await second.aclose()


async def test_without_a_cache_each_process_counts_for_itself() -> None:
    clock = ManualClock()
    limiter = RateLimiter(Cache(None, clock), clock, rate=2.0, burst=10)
    assert await spend(limiter, "a") == 10
    assert await spend(limiter, "b") == 10
    clock.advance(1.5)
    assert await spend(limiter, "a") == 3
    clock.advance(3600)
    assert await spend(limiter, "a") == 10


def test_a_token_bucket_tells_how_long_to_wait() -> None:
    tokens = TokenBucket(4.0, 2.0, now=100.0)
    assert [tokens.take(100.0), tokens.take(100.0)] == [0.0, 0.0]
    assert tokens.take(100.0) == pytest.approx(0.25)
    assert tokens.take(100.25) == 0.0
    assert tokens.take(100.25) == pytest.approx(0.25)
