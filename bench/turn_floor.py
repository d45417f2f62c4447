"""The floor: a bare script that does what no assistant can do without.

One streaming call of the official SDK and one commit in Postgres for each turn; no history, no
mailbox, no client. It runs as a process of its own and is told what to do on standard input:

    {"concurrency": 100, "seconds": 5, "name": "x"}

and answers with one line, `{"turns": [[marker, began, first_text, ended, outcome], …]}`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg

from mira.ids import SystemIds

TABLE = "bench_floor"
_WORDS = "What comes next, and why should we begin with that one?"

#: Asks the model and reads the stream: returns when the first text came, and all of it.
Call = Callable[[str], Awaitable[tuple[float, str]]]


def anthropic_call(url: str) -> Call:
    import anthropic
    import httpx2

    client = anthropic.AsyncAnthropic(
        api_key="none", base_url=url, max_retries=0,
        http_client=anthropic.DefaultAsyncHttpxClient(
            limits=httpx2.Limits(max_connections=4000, max_keepalive_connections=400)
        ),
    )  # fmt: skip

    async def call(words: str) -> tuple[float, str]:
        first, pieces = 0.0, []
        async with await client.messages.create(
            model="double", max_tokens=8192, stream=True,
            messages=[{"role": "user", "content": words}],
        ) as stream:  # fmt: skip
            async for event in stream:
                if event.type == "content_block_delta" and event.delta.type == "text_delta":
                    first = first or time.monotonic()
                    pieces.append(event.delta.text)
        return first, "".join(pieces)

    return call


def openai_call(url: str) -> Call:
    import httpx2
    import openai

    client = openai.AsyncOpenAI(
        api_key="none", base_url=f"{url}/v1", max_retries=0,
        http_client=openai.DefaultAsyncHttpxClient(
            limits=httpx2.Limits(max_connections=4000, max_keepalive_connections=400)
        ),
    )  # fmt: skip

    async def call(words: str) -> tuple[float, str]:
        first, pieces = 0.0, []
        async with await client.chat.completions.create(
            model="double", stream=True, messages=[{"role": "user", "content": words}]
        ) as stream:
            async for chunk in stream:
                if chunk.choices and chunk.choices[0].delta.content:
                    first = first or time.monotonic()
                    pieces.append(chunk.choices[0].delta.content)
        return first, "".join(pieces)

    return call


class Floor:
    """The script's loop."""

    def __init__(self, call: Call, pool: asyncpg.Pool[asyncpg.Record]) -> None:
        self._call = call
        self._pool = pool
        self._ids = SystemIds()
        self._count = 0

    async def closed(self, concurrency: int, seconds: float, name: str) -> list[list[Any]]:
        """Keep `concurrency` turns under way for so long."""
        turns: list[list[Any]] = []
        until = time.monotonic() + seconds

        async def one_after_another() -> None:
            while (began := time.monotonic()) < until:
                self._count += 1
                marker = f"{name}-{self._count}"
                first, outcome = 0.0, "complete"
                try:
                    said = f"[#{marker}] {_WORDS}"
                    first, reply = await self._call(said)
                    await self._pool.execute(
                        f"insert into {TABLE} (id, said, reply) values ($1, $2, $3)",  # noqa: S608
                        self._ids.new(), said, reply,
                    )  # fmt: skip
                except Exception as error:
                    outcome = type(error).__name__
                turns.append([marker, began, first, time.monotonic(), outcome])

        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(one_after_another())
        return turns


async def _run(arguments: argparse.Namespace) -> None:
    calls = {"anthropic": anthropic_call, "openai": openai_call}
    pool = await asyncpg.create_pool(**json.loads(arguments.database), min_size=2, max_size=16)
    await pool.execute(
        f"create table if not exists {TABLE} (id uuid primary key, said text, reply text)"
    )
    floor = Floor(calls[arguments.provider](arguments.url), pool)
    loop = asyncio.get_running_loop()
    print(json.dumps({"ready": True}), flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps({"turns": await floor.closed(**json.loads(line))}), flush=True)
    await pool.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.turn_floor")
    parser.add_argument("--url", required=True, help="of the provider double")
    parser.add_argument("--provider", default="anthropic")
    parser.add_argument("--database", required=True, help="arguments of asyncpg.connect, as JSON")
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(parser.parse_args()))


if __name__ == "__main__":
    main()
