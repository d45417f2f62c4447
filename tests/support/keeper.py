"""A keeper of memories at work: real database, embedder and SDKs; the provider double on a port."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from uuid import UUID

import anyio
import httpx2
import msgspec

from bench.provider_double import ProviderDouble
from bench.provider_script import BatchFault, BatchScript, Behaviour, Script
from mira.actors.memory_keeper_parts import (
    EXTRACTION,
    KIND,
    SUMMARIES,
    KeeperParts,
    Step,
    keeper_of,
)
from mira.actors.memory_keeper_questions import Questions
from mira.clock import SystemClock
from mira.ids import SystemIds
from mira.llm import models as llm_models
from mira.llm.routing import Policy
from mira.llm.scripted import Answer, says
from mira.memory.changes import Recogniser
from mira.memory.lived import drift
from mira.memory.memories import Memories
from mira.memory.quoting import TEMPLATES
from mira.memory.steps import Steps
from mira.messages.base import Message
from mira.messages.memory import CatchUp, ExtractSegment, SummariseSegment
from mira.prompt.templates import Templates
from mira.settings import Settings
from mira.store.database import Database
from tests.support.core import Core, running_core
from tests.support.memory import OneEncoder

ids = SystemIds()
#: How the data of each question end.
ASKS = {
    "extraction": "Write down what the user said",
    "links": "Say how the new memories",
    "consolidation": "Propose merges, as JSON",
    "approval": "Give your verdicts",
    "floor_review": "Review each memory",
    "entity_merge": "Say which are the same",
    "summary": "Write down how this conversation was",
    "summary_again": "only with what is to be given anew",
    "summary_part": "Write your notes on this part",
    "summary_correction": "Write trace and precis once more",
    "summary_short": "Write the four lines now",
    "brief": "Write the note, as JSON",
}
NO_LINKS: dict[str, list[Any]] = {"links": [], "merges": []}


def answers(**by_purpose: Any) -> Script:
    """A script: for each purpose its answer, or several in turn (the last again and again).

    A dict or list is given as JSON, a string as it is, a Behaviour as what it is.
    """
    rules: list[Behaviour] = []
    for purpose, given in ({"links": NO_LINKS} | by_purpose).items():
        several = given if isinstance(given, tuple) else (given,)
        for place, one in enumerate(several):
            behaviour = one if isinstance(one, Behaviour) else Behaviour(text=_text(one))
            times = None if place == len(several) - 1 else 1
            rules.append(msgspec.structs.replace(behaviour, contains=ASKS[purpose], times=times))
    return Script(default=Behaviour(text="I do not know what you mean."), rules=rules)


def _text(given: Any) -> str:
    return given if isinstance(given, str) else json.dumps(given)


def fact(text: str, *lines: int, **fields: Any) -> dict[str, Any]:
    """One item of an answer of extraction."""
    return {"lines": list(lines or (1,)), "text": text, **fields}


def memories_of(*facts: dict[str, Any]) -> dict[str, Any]:
    return {"memories": list(facts)}


class Crash(Exception):
    """What stands for a process that ends between two steps."""


@dataclass
class Kept:
    """A running keeper, with what tests ask of it."""

    core: Core
    parts: KeeperParts
    double: ProviderDouble
    database: Database
    #: The next times that these steps are reached, the work ends there.
    crashes: list[Step] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    act: dict[Step, Callable[[], None]] = field(default_factory=dict)
    _news: anyio.Event = field(default_factory=anyio.Event)

    def script(self, script: Script, *faults: BatchFault, **batches: Any) -> None:
        script.batches = BatchScript(faults=list(faults), **batches)
        self.double.script = script

    def reached(self, step: Step) -> None:
        self.steps.append(step)
        self._news.set()
        if step in self.crashes:
            self.crashes.remove(step)
            raise Crash(step)
        if (act := self.act.pop(step, None)) is not None:
            act()

    async def tell(
        self, user_id: UUID, message: Message, lane: str, key: str | None = None
    ) -> None:
        async with self.database.user(user_id) as tx:
            await self.core.system.tell_durable(
                tx, keeper_of(user_id), message, lane=lane, key=key or lane
            )

    async def extract(self, user_id: UUID, segment_id: UUID, *, now: bool = False) -> None:
        """Have a segment extracted, and wait until all that follows from it is done."""
        message = ExtractSegment(segment_id=segment_id, now=now)
        await self.tell(user_id, message, EXTRACTION, str(segment_id))
        await self.settled()

    async def summarise(self, user_id: UUID, segment_id: UUID) -> None:
        """Have a segment summarised, and wait until that is done."""
        message = SummariseSegment(segment_id=segment_id)
        await self.tell(user_id, message, SUMMARIES, str(segment_id))
        await self.settled()

    async def look_around(self, user_id: UUID) -> None:
        """Let a keeper that has just come to life look for what was left behind."""
        self.core.system.cell(keeper_of(user_id)).actor = None
        await self.core.system.tell(keeper_of(user_id), CatchUp())
        await self.core.system.workers.quiet()

    async def settled(self) -> None:
        """Wait until no work is left that is due within a minute."""
        with anyio.fail_after(40):
            while await self._left():
                await self.core.system.workers.quiet()
                await anyio.lowlevel.checkpoint()

    async def _left(self) -> bool:
        async with self.database.engine() as tx:
            left: bool = await tx.value(
                "select exists (select from outbox where kind = $1 and due_at < $2)",
                KIND, datetime.now(UTC) + timedelta(minutes=1),
            )  # fmt: skip
        return left

    async def until(self, step: Step) -> None:
        """Wait until a step has been reached, if it has not been yet."""
        with anyio.fail_after(40):
            while step not in self.steps:
                self._news = anyio.Event()
                await self._news.wait()

    async def rows(self, user_id: UUID, sql: str, *values: object) -> list[dict[str, Any]]:
        async with self.database.user(user_id) as tx:
            return [dict(row) for row in await tx.fetch(sql, *values)]

    async def texts(self, user_id: UUID) -> list[str]:
        """The active memories, in the order in which they were stored."""
        rows = await self.rows(
            user_id, "select text from memories where status = 'active' order by doc"
        )
        return [row["text"] for row in rows]

    async def refs(self, user_id: UUID) -> dict[str, str]:
        """The short id of each memory, by its text."""
        rows = await self.rows(user_id, "select text, short_id from memories")
        return {row["text"]: row["short_id"] for row in rows}

    async def calls(self, user_id: UUID) -> list[str]:
        """The purposes of the calls in the books, in order."""
        rows = await self.rows(
            user_id, "select purpose from model_calls where error is null order by at, id"
        )
        return [row["purpose"] for row in rows]

    def asked(self, purpose: str) -> list[str]:
        """The data of the questions of a purpose that reached the provider, oldest first."""
        found = [_last_words(body) for body in self.double.bodies]
        return [words for words in found if ASKS[purpose] in words]


def _last_words(body: dict[str, Any]) -> str:
    content = next(m for m in body["messages"] if m["role"] == "user")["content"]
    return content if isinstance(content, str) else "".join(b["text"] for b in content)


@asynccontextmanager
async def keeping(
    database: Database,
    encoders: OneEncoder,
    *,
    provider: Literal["anthropic", "openai"] = "openai",
    script: Sequence[Answer] = (),
    recogniser: Recogniser | None = None,
    keyed: bool = True,
    able: Callable[[], bool] = lambda: True,
    tells: Callable[[], bool] = lambda: True,
    recognises: drift.Recogniser | None = None,
    grace: float = 5.0,
    clock: SystemClock | None = None,
    rest: timedelta = timedelta(),
) -> AsyncIterator[Kept]:
    """A core whose keeper asks the double: in batches if it is an Anthropic with a key."""
    clock = clock or SystemClock()
    async with ProviderDouble(answers()) as double:
        names = {n: None for n in Settings.model_fields if "key" in n or "base_url" in n}
        chosen = {f"{provider}_base_url": double.url, "model": f"{provider}:"}
        given = Settings.model_construct(**{**Settings().model_dump(), **names, **chosen})

        async def secret(name: str) -> str | None:
            return "a-key" if keyed and name == f"{provider}_api_key" else None

        transport = httpx2.AsyncHTTPTransport(verify=False)
        models = await llm_models.build(
            given, secret, clock, ids, policy=Policy(back_off=0.01, attempts=2),
            transport=transport,
        )  # fmt: skip
        kept: Kept
        parts = KeeperParts(
            database=database,
            clock=clock,
            ids=ids,
            memories=Memories(database, encoders, recogniser, clock, ids),
            steps=Steps(database, encoders, clock, ids),
            encoders=encoders,
            questions=Questions(models.for_purpose("extraction"), Templates(TEMPLATES), ids),
            telling=Questions(models.for_purpose("summary"), Templates(TEMPLATES), ids),
            batches=lambda: models.batches("extraction"),
            able=able,
            tells=tells,
            recogniser=recognises,
            reached=lambda step: kept.reached(step),
            pause=lambda polls: timedelta(seconds=0.02),
            rest=rest,
        )
        try:
            async with running_core(
                database, *(script or (says("Good."),)), keeper=parts, grace=grace, clock=clock
            ) as core:
                kept = Kept(core, parts, double, database)
                yield kept
            bugs = [error for error in core.bugs if not isinstance(error, Crash)]
            if bugs:
                raise ExceptionGroup("the keeper failed", bugs)
        finally:
            await models.aclose()
