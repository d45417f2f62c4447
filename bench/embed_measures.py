"""What `mira bench embed` measures, slice by slice."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.report import middle, quantile
from mira.clock import SystemClock
from mira.memory.embedding import Embedder
from mira.memory.embedding.minilm import MiniLM
from mira.memory.pool import CpuPool
from mira.memory.recogniser import DEFAULT_MODEL, Recogniser

Row = dict[str, Any]
#: Keeps the models busy until it is cancelled.
Load = Callable[[], Awaitable[None]]

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "bench/README.md", "docs/operations.md")
#: Words of a text: of a query, of a memory or a short message, of a long message.
QUERY, SHORT, LONG = 8, 16, 150
#: How often the event loop is asked whether it is late, in seconds.
PROBE = 0.001


@dataclass
class House:
    model: MiniLM
    pool: CpuPool
    embedder: Embedder
    recogniser: Recogniser


@asynccontextmanager
async def opened(models: Path, threads: int) -> AsyncIterator[House]:
    """Everything loaded."""
    pool = CpuPool(threads)
    model = await pool.run(partial(MiniLM, models))
    embedder, recogniser = (
        Embedder(lambda: model, pool, SystemClock()),
        Recogniser(DEFAULT_MODEL, pool),
    )
    await embedder.warm()
    await recogniser.warm()
    try:
        yield House(model, pool, embedder, recogniser)
    finally:
        await embedder.aclose()
        await pool.aclose()


class Texts:
    """Texts of words from the project's documents; the same in every run, none of them twice."""

    def __init__(self) -> None:
        root = Path(__file__).resolve().parents[1]
        found = " ".join((root / name).read_text() for name in DOCUMENTS)
        self._words = sorted(set(re.findall(r"[A-Za-z]{2,12}", found)))
        self._random = random.Random(7)

    def of(self, words: int) -> str:
        return " ".join(self._random.choices(self._words, k=words))


class Bench:
    """Takes the figures of one run."""

    def __init__(self, house: House, rounds: int, seconds: float) -> None:
        self._house = house
        self._rounds = rounds
        self._seconds = seconds
        self._texts = Texts()

    async def queries(self) -> list[Row]:
        """One short query at a time: with nothing else to do, and while texts come flat out."""
        loads: dict[str, Load] = {"idle": _nothing, "embedding": self._embedding}
        seen = await self._in_turn(loads, self._ask)
        return [_times("query", load, values) for load, values in seen.items()]

    async def lag(self) -> list[Row]:
        """How late the event loop wakes a task that asked for 1 ms."""
        loads: dict[str, Load] = {
            "idle": _nothing,
            "embedding": self._embedding,
            "queries too": self._both,
            "finding names": self._naming,
        }
        seen = await self._in_turn(loads, self._probe)
        return [_times("lag", load, values) for load, values in seen.items()]

    async def throughput(self) -> list[Row]:
        """Texts a second: through the embedder by callers, in the bare model by batch size."""
        ways: dict[tuple[str, int], Callable[[int], Awaitable[float]]] = {}
        for size in (1, 8, 64):
            ways["embedder", size] = partial(self._through_embedder, size)
        for size in (1, 4, 16, 32):
            ways["bare model", size] = partial(self._bare, size)
        rates: dict[tuple[str, int, int], list[float]] = {}
        for _ in range(max(1, self._rounds // 2)):
            for (what, size), measure in ways.items():
                for words in (SHORT, LONG):
                    rates.setdefault((what, size, words), []).append(await measure(words))
        return [
            {
                "what": what,
                "size": size,
                "short": round(middle(rates[what, size, SHORT]), 1),
                "long": round(middle(rates[what, size, LONG]), 1),
            }
            for what, size in ways
        ]

    async def _in_turn(
        self, loads: dict[str, Load], measure: Callable[[float, list[float]], Awaitable[None]]
    ) -> dict[str, list[float]]:
        seen: dict[str, list[float]] = {load: [] for load in loads}
        for _ in range(self._rounds):
            for name, load in loads.items():
                busy = asyncio.ensure_future(load())
                await asyncio.sleep(0.2)  # what was under way is over, what comes has begun
                await measure(time.perf_counter() + self._seconds, seen[name])
                busy.cancel()
                await asyncio.gather(busy, return_exceptions=True)
        return seen

    async def _ask(self, until: float, into: list[float]) -> None:
        while (began := time.perf_counter()) < until:
            await self._house.embedder.query(self._texts.of(QUERY))
            into.append(time.perf_counter() - began)

    async def _probe(self, until: float, into: list[float]) -> None:
        while (began := time.perf_counter()) < until:
            await asyncio.sleep(PROBE)
            into.append(time.perf_counter() - began - PROBE)

    async def _embedding(self) -> None:
        """Texts of all lengths, always more than are under way."""

        async def caller() -> None:
            while True:
                words = [random.choice((QUERY, SHORT, SHORT, LONG)) for _ in range(32)]
                await self._house.embedder.texts([self._texts.of(n) for n in words])

        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(caller())

    async def _both(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._embedding())
            group.create_task(self._ask(float("inf"), []))

    async def _naming(self) -> None:
        while True:
            await self._house.recogniser.entities(self._texts.of(LONG))

    async def _through_embedder(self, callers: int, words: int) -> float:
        done = 0
        until = time.perf_counter() + self._seconds

        async def caller() -> None:
            nonlocal done
            # One caller brings a list; many bring one text each, as turns and jobs do.
            some = 16 if callers == 1 else 1
            while time.perf_counter() < until:
                await self._house.embedder.texts([self._texts.of(words) for _ in range(some)])
                done += some

        began = time.perf_counter()
        await asyncio.gather(*(caller() for _ in range(callers)))
        return done / (time.perf_counter() - began)

    async def _bare(self, batch: int, words: int) -> float:
        def run() -> float:
            done, began = 0, time.perf_counter()
            while time.perf_counter() < began + self._seconds:
                self._house.model.encode([self._texts.of(words) for _ in range(batch)], "text")
                done += batch
            return done / (time.perf_counter() - began)

        return await self._house.pool.run(run)


async def _nothing() -> None:
    await asyncio.Event().wait()


def _times(what: str, load: str, seconds: list[float]) -> Row:
    row: Row = {"what": what, "load": load, "count": len(seconds)}
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0)):
        row[f"{name}_ms"] = round(quantile(seconds, share) * 1e3, 3)
    return row
