"""A token bucket that all processes share, kept in Valkey.

The bucket is computed by the server, in one step, by its own clock: no caller can be wrong about
the time, and no two can take the same token.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, cast

import msgspec
import valkey.asyncio as valkey

#: KEYS[1] the bucket; ARGV: tokens per second, capacity, wanted. Answers {granted, seconds until
#: one more}. Grants as many of the wanted as there are. Times in text: Lua numbers are cut to
#: integers on their way out.
_TAKE = """
local rate, capacity, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local kept = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = tonumber(kept[1]) or capacity
tokens = math.min(capacity, tokens + math.max(0, now - (tonumber(kept[2]) or now)) * rate)
local granted = math.min(wanted, math.floor(tokens))
tokens = tokens - granted
redis.call('HSET', KEYS[1], 'tokens', tostring(tokens), 'at', string.format('%.6f', now))
redis.call('PEXPIRE', KEYS[1], math.ceil(capacity / rate * 1000) + 1000)
local wait = 0
if tokens < 1 then wait = (1 - tokens) / rate end
return {granted, tostring(wait)}
"""


class Grant(msgspec.Struct, frozen=True):
    """How many tokens were given, and in how many seconds the next one is there."""

    tokens: int
    wait: float


async def take(
    client: valkey.Valkey, bucket: str, *, rate: float, capacity: float, wanted: int
) -> Grant:
    """Take up to `wanted` tokens of a bucket that refills with `rate` a second up to `capacity`.

    Raises what the client raises when the server is away (see mira.store.cache).
    """
    answer = await cast(
        Awaitable[list[Any]],
        client.eval(_TAKE, 1, f"mira:rate:{bucket}", str(rate), str(capacity), str(wanted)),
    )
    return Grant(int(answer[0]), float(answer[1]))
