"""The floor under a turn that recalls: a bare script that does the same one after the other.

It commits the user's message, asks the Subcortex (one call of the official SDK), encodes the three
phrases in one batch, searches the memories by those vectors, and asks the model (one streaming call
of the SDK). No history, no prompt, no mailbox, no client. It runs as a process of its own and is
told what to do on standard input:

    {"concurrency": 1, "seconds": 5, "name": "x", "users": ["…"], "pause": 0}

and answers with one line, `{"turns": [[marker, began, first_text, ended, outcome], …], "stages":
{"commit": [milliseconds, …], …}}`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from bench.memory_house import OneEncoder
from bench.provider_script import ASIDE
from bench.turn_floor import Call, anthropic_call, openai_call
from mira import telemetry
from mira.clock import SystemClock
from mira.ids import SystemIds
from mira.memory.embedding import DEFAULT_MODEL, Embedder, backend_for
from mira.memory.memories import Memories
from mira.memory.pool import CpuPool
from mira.memory.query import RecallQuery
from mira.store.database import Database

TABLE = "bench_mind_floor"
WORDS = "What comes next, and why should we begin with that one?"
#: Memories that a turn is shown at most.
LIMIT = 20
STAGES = ("commit", "subcortex", "embed", "search", "model")

#: Asks the Subcortex; returns the phrases.
Aside = Callable[[str], Awaitable[tuple[str, ...]]]


class _Said(msgspec.Struct):
    phrases: tuple[str, ...]


_read = msgspec.json.Decoder(_Said).decode


def anthropic_aside(url: str) -> Aside:
    import anthropic

    client = anthropic.AsyncAnthropic(api_key="none", base_url=url, max_retries=0)

    async def ask(words: str) -> tuple[str, ...]:
        reply = await client.messages.create(
            model=ASIDE, max_tokens=1024, messages=[{"role": "user", "content": words}]
        )
        return _read(reply.content[0].text).phrases  # type: ignore[union-attr]

    return ask


def openai_aside(url: str) -> Aside:
    import openai

    client = openai.AsyncOpenAI(api_key="none", base_url=f"{url}/v1", max_retries=0)

    async def ask(words: str) -> tuple[str, ...]:
        reply = await client.chat.completions.create(
            model=ASIDE, messages=[{"role": "user", "content": words}]
        )
        return _read(reply.choices[0].message.content or "").phrases

    return ask


class Floor:
    """The script's loop."""

    def __init__(self, call: Call, aside: Aside, database: Database, embedder: Embedder) -> None:
        self._call = call
        self._aside = aside
        self._database = database
        self._embedder = embedder
        self._ids = SystemIds()
        self._memories = Memories(database, OneEncoder(embedder), None, SystemClock(), self._ids)
        self._count = 0

    async def closed(
        self, concurrency: int, seconds: float, name: str, users: list[str], pause: float
    ) -> dict[str, Any]:
        """Keep `concurrency` turns under way for so long; `pause` seconds between two."""
        turns: list[list[Any]] = []
        stages: dict[str, list[float]] = {stage: [] for stage in STAGES}
        until = time.monotonic() + seconds

        async def one_after_another(first_user: int) -> None:
            at = first_user
            while (began := time.monotonic()) < until:
                self._count += 1
                marker = f"{name}-{self._count}"
                marks, outcome = [began], "complete"
                try:
                    await self._turn(UUID(users[at % len(users)]), f"[#{marker}] {WORDS}", marks)
                except Exception as error:
                    outcome = type(error).__name__
                else:
                    for stage, (a, b) in zip(STAGES, pairwise(marks), strict=True):
                        stages[stage].append((b - a) * 1000)
                turns.append([marker, began, marks[-1], time.monotonic(), outcome])
                at += concurrency
                if pause:
                    await asyncio.sleep(pause)

        async with asyncio.TaskGroup() as group:
            for worker in range(concurrency):
                group.create_task(one_after_another(worker))
        return {"turns": turns, "stages": stages}

    async def _turn(self, user: UUID, said: str, marks: list[float]) -> None:
        """One turn; adds the moment at which each stage was over."""
        statement = f"insert into {TABLE} (id, said) values ($1, $2)"  # noqa: S608
        async with self._database.user(user) as tx:
            await tx.execute(statement, self._ids.new(), said)
        marks.append(time.monotonic())
        phrases = await self._aside(said)
        marks.append(time.monotonic())
        await self._embedder.queries(phrases)
        marks.append(time.monotonic())
        # The embedder remembers the vectors: this is the search alone.
        query = RecallQuery(phrases=phrases, limit=LIMIT)
        await self._memories.search(user, query, traced=False, linked=0)
        marks.append(time.monotonic())
        first, reply = await self._call(said)
        marks.append(first)
        async with self._database.user(user) as tx:
            await tx.execute(statement, self._ids.new(), reply)


async def _run(arguments: argparse.Namespace) -> None:
    calls = {"anthropic": anthropic_call, "openai": openai_call}
    asides = {"anthropic": anthropic_aside, "openai": openai_aside}
    roles: dict[str, Any] = json.loads(arguments.database)
    await _table(roles["postgres"])
    database = await Database.open(roles["mira_app"], roles["mira_engine"], size=16)
    pool = CpuPool(1)
    embedder = Embedder(backend_for(DEFAULT_MODEL, Path(arguments.models)), pool, SystemClock())
    await embedder.warm()
    floor = Floor(
        calls[arguments.provider](arguments.url), asides[arguments.provider](arguments.url),
        database, embedder,
    )  # fmt: skip
    loop = asyncio.get_running_loop()
    print(json.dumps({"ready": True}), flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(await floor.closed(**json.loads(line))), flush=True)
    await embedder.aclose()
    await pool.aclose()
    await database.aclose()


async def _table(owner: dict[str, Any]) -> None:
    import asyncpg

    connection = await asyncpg.connect(**owner)
    try:
        await connection.execute(
            f"create table if not exists {TABLE} (id uuid primary key, said text); "
            f"grant insert on {TABLE} to mira_app"
        )
    finally:
        await connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.mind_floor")
    parser.add_argument("--url", required=True, help="of the provider double")
    parser.add_argument("--provider", default="anthropic")
    parser.add_argument(
        "--database", required=True, help="arguments of asyncpg.connect by role, as JSON"
    )
    parser.add_argument("--models", required=True, help="the folder of the embedding model's graph")
    import uvloop

    # What is printed on standard output is read by the benchmark.
    telemetry.configure("warning")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(parser.parse_args()))


if __name__ == "__main__":
    main()
