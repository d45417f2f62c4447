"""The turn benchmark's rounds with people who have a past, and what the server noted of them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import uvloop

from bench import turn_load
from bench.mind_people import Group, Past, answers
from bench.priority import real_time
from bench.report import quantile
from bench.turn_figures import (
    Row,
    floor_overheads,
    overheads,
    per_second,
    row,
    server_stages,
)
from bench.turn_load import Plan, Turn
from bench.turn_processes import Double, Helper, Server

#: Words in a reply.
TOKENS = 20
#: Seconds between the first turns, which wake the conversations, and those that are measured.
REST = 1.0


@dataclass
class Rounds:
    """What all rounds of one group have given, ours and the bare script's."""

    group: Group
    concurrency: int
    delay_ms: float = 0.0
    ours: dict[str, list[float]] = field(default_factory=dict)
    floor: dict[str, list[float]] = field(default_factory=dict)
    rates: list[float] = field(default_factory=list)
    floor_rates: list[float] = field(default_factory=list)
    errors: int = 0
    floor_errors: int = 0
    turns: int = 0
    #: Turns whose answer was found with the message itself, and memories and messages shown.
    speculative: int = 0
    shown: list[float] = field(default_factory=list)
    said: list[float] = field(default_factory=list)

    def name(self, stage: str) -> dict[str, Any]:
        return {
            "concurrency": self.concurrency, "stage": stage, "memories": self.group.memories,
            "history": self.group.history, "delay_ms": self.delay_ms,
        }  # fmt: skip

    def rows(self) -> list[Row]:
        """Every stage, ours and then the script's."""
        found = []
        for whose, stages, errors in (
            ("mind", self.ours, self.errors), ("mind.floor", self.floor, self.floor_errors),
        ):  # fmt: skip
            for stage, values in stages.items():
                more = self.name(f"{whose}.{stage}")
                c, name = more.pop("concurrency"), more.pop("stage")
                found.append(row(c, name, values, errors, **more))
        return found

    def first_text(self, share: float) -> float:
        return quantile(self.ours["first_text"], share)

    def against_floor(self) -> Row:
        """How long until the first text, beside the bare script."""
        middle = quantile(self.floor["first_text"], 0.5)
        last = quantile(self.floor["first_text"], 0.99)
        return {
            **self.name("mind.ratio"),
            "p50_ratio": round(self.first_text(0.5) / middle, 3),
            "p99_ratio": round(self.first_text(0.99) / middle, 3),
            "p99_of_p99": round(self.first_text(0.99) / last, 3),
            "speculative": round(self.speculative / max(1, self.turns), 3),
            "memories_shown": round(sum(self.shown) / max(1, len(self.shown)), 1),
            "messages_shown": round(sum(self.said) / max(1, len(self.said)), 1),
            "errors": self.errors,
        }


class Mind:
    """Runs rounds on a server that stands, with its double."""

    def __init__(
        self, double: Double, server: Server, provider: str, *, first: bool = False
    ) -> None:
        """`first`: what is measured goes before all else that the machine does meanwhile."""
        self._first = first
        self._double = double
        self._server = server
        self._provider = provider
        self._answers = answers()
        self._floor: Helper | None = None

    def close(self) -> None:
        if self._floor is not None:
            self._floor.close()

    def _before_others(self, *processes: int) -> AbstractContextManager[None]:
        if not self._first:
            return nullcontext()
        return real_time([*self._server.processes(), self._double.pid, *processes])

    @property
    def models(self) -> Path:
        """The folder of the embedding model's graph."""
        return self._server.home / "models"

    def groups(self, wanted: Sequence[tuple[int, int, int]]) -> list[Group]:
        """Groups of (memories, history, users)."""

        async def make() -> list[Group]:
            most = max(max(memories, history) for memories, history, _ in wanted)
            async with Past(self._server.connect, self.models, most) as past:
                return [await past.group(*each) for each in wanted]

        self._server.until_loaded()
        return asyncio.run(make())

    def script(self, delay_ms: float = 0.0) -> None:
        """What the double does: answer at once, but for the Subcortex after `delay_ms`."""
        self._double.script(
            default={"tokens": TOKENS}, aside={"texts": self._answers, "first_token_ms": delay_ms}
        )

    def ours(self, into: Rounds, seconds: float, number: int, pause: float) -> None:
        """One round of a closed loop on the server; `pause` seconds between a client's turns."""
        group = into.group
        name = f"m{group.memories}-h{group.history}-d{into.delay_ms:g}-{into.concurrency}-{number}"
        plan = Plan(name, "closed", into.concurrency, seconds, pause=pause)
        self.script(into.delay_ms)
        with self._before_others():
            turns = uvloop.run(turn_load.run(self._server.url, list(group.keys), plan, self._ready))
        asides = self._double.asides()
        stamps = self._double.stamps()
        counted(turns, stamps, asides)
        done = [turn for turn in turns if turn.outcome == "complete"]
        into.turns += len(turns)
        into.errors += len(turns) - len(done)
        into.rates.append(per_second([t.ended for t in done], [t.due for t in done]))
        by_stage = overheads(turns, stamps)
        _extend(into.ours, {"accepted": by_stage["accepted"]})
        accounts = asyncio.run(_accounts(self._server.connect("postgres"), done))
        _extend(into.ours, _ordered(server_stages(turns), accounts))
        _extend(into.ours, {s: by_stage[s] for s in ("first_text", "complete")})
        into.speculative += sum(one["speculative"] for one in accounts)
        into.shown += [one["memories"] for one in accounts]
        into.said += [one["passages"] for one in accounts]

    def _ready(self) -> None:
        """The first turns are over: let what they leave to do be over, too."""
        time.sleep(REST)
        self._double.forget()

    def floor(self, into: Rounds, seconds: float, number: int, pause: float) -> None:
        """One round of the bare script, with the same people."""
        if self._floor is None:
            roles = {
                role: self._server.connect(role) for role in ("postgres", "mira_app", "mira_engine")
            }
            self._floor = Helper(
                "bench.mind_floor", "--url", self._double.url, "--provider", self._provider,
                "--database", json.dumps(roles), "--models", str(self.models),
            )  # fmt: skip
            self._floor.read()
        self.script()
        self._double.forget()
        name = f"floor-{into.group.memories}-{into.concurrency}-{number}"
        users = [str(user) for user in into.group.users]
        with self._before_others(self._floor.pid):
            told = self._floor.ask(
                concurrency=into.concurrency, seconds=seconds, name=name, users=users, pause=pause
            )
        done = [t for t in told["turns"] if t[4] == "complete"]
        into.floor_errors += len(told["turns"]) - len(done)
        into.floor_rates.append(per_second([t[3] for t in done], [t[1] for t in done]))
        _extend(into.floor, told["stages"])
        _extend(into.floor, floor_overheads(told["turns"], self._double.stamps()))


def counted(
    turns: Sequence[Turn], stamps: Mapping[str, Mapping[str, Any]], asides: Sequence[Any]
) -> None:
    """Hold the run to this: for each turn the Subcortex is called once, before the model is, and
    never again. Raises AssertionError."""
    called: dict[str, list[float]] = {}
    for marker, received in asides:
        called.setdefault(marker, []).append(received)
    for turn in turns:
        times = called.pop(turn.marker, [])
        assert len(times) == 1, f"{len(times)} calls of the Subcortex for {turn.marker}"
        if turn.outcome == "complete":
            assert times[0] < stamps[turn.marker]["received"], f"called late for {turn.marker}"
    assert not called, f"{len(called)} calls of the Subcortex for no turn of the loop"


def _ordered(
    server: dict[str, list[float]], accounts: Sequence[Mapping[str, Any]]
) -> dict[str, list[float]]:
    """The stages of the server in their order, with the parts of recall after its own, and when
    turns were settled."""
    found: dict[str, list[float]] = {}
    for stage, values in server.items():
        found[f"server.{stage}"] = values
        if stage == "recalled":
            for one in accounts:
                for part, took in one["recall_ms"].items():
                    found.setdefault(f"recall.{part}", []).append(took)
    found["server.settled"] = [one["settled_ms"] for one in accounts if one["settled_ms"]]
    return found


async def _accounts(owner: Mapping[str, Any], turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """What the server wrote down of turns."""
    connection = await asyncpg.connect(**owner)
    try:
        rows = await connection.fetch(
            "select extract(epoch from t.settled_at - t.accepted_at)::float * 1000 as settled_ms, "
            "  a.trace -> 'recall_ms' as recall_ms, "
            "  (a.trace -> 'speculative')::boolean as speculative, "
            "  jsonb_array_length(a.trace -> 'memories') as memories, "
            "  jsonb_array_length(a.trace -> 'passages') as passages "
            "from turns t join turn_traces a on a.turn_id = t.id where t.request_id = any($1)",
            [turn.marker for turn in turns],
        )
    finally:
        await connection.close()
    return [{**dict(row), "recall_ms": json.loads(row["recall_ms"])} for row in rows]


def _extend(into: dict[str, list[float]], more: Mapping[str, Sequence[float]]) -> None:
    for name, values in more.items():
        into.setdefault(name, []).extend(values)
