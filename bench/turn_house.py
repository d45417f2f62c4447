"""Everything that the turn benchmark runs on, and one measurement after another on it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import uvloop

from bench import turn_fanout, turn_load, turn_pace
from bench.report import middle, quantile
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

Spent = dict[str, float]

#: Words in a reply.
TOKENS = 20
#: Users who take turns in a loop with fewer at once: so that no conversation gets long, and no
#: client meets the limit on its requests.
TALKERS = 50
#: Conversation of the measurement with a full prompt: so many turns with so long replies.
LONG_TURNS, LONG_REPLY = 48, "All of this was said before and stays in view. " * 75


@dataclass
class Loops:
    """What all rounds of one concurrency have given."""

    concurrency: int
    mira: dict[str, list[float]] = field(default_factory=dict)
    server: dict[str, list[float]] = field(default_factory=dict)
    floor: dict[str, list[float]] = field(default_factory=dict)
    errors: int = 0
    floor_errors: int = 0
    rates: list[float] = field(default_factory=list)
    floor_rates: list[float] = field(default_factory=list)
    #: Milliseconds of processor time a turn: the server, its services; the script, its database.
    cpu: dict[str, list[float]] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """Turns a second beside the bare script's: the median over the pairs of rounds."""
        pairs = zip(self.rates, self.floor_rates, strict=True)
        return middle([ours / theirs if theirs else 0.0 for ours, theirs in pairs])

    def rows(self) -> list[Row]:
        c = self.concurrency
        return [
            *(row(c, stage, values, self.errors) for stage, values in self.mira.items()),
            *(row(c, f"server.{stage}", v, self.errors) for stage, v in self.server.items()),
            *(row(c, f"floor.{stage}", v, self.floor_errors) for stage, v in self.floor.items()),
            {
                "concurrency": c,
                "stage": "rate",
                "turns_per_s": round(middle(self.rates), 1),
                "floor_turns_per_s": round(middle(self.floor_rates), 1),
                "ratio": round(self.ratio, 3),
                "ratios": [
                    round(a / b, 3) if b else None
                    for a, b in zip(self.rates, self.floor_rates, strict=True)
                ],
                "cpu_ms_per_turn": {who: round(middle(v), 2) for who, v in self.cpu.items()},
                "errors": self.errors,
            },
        ]


class House:
    """Double, server and bare script, running."""

    def __init__(self, provider: str) -> None:
        self.double = Double()
        self.server = Server(self.double, provider)
        self.provider = provider
        self._floor: Helper | None = None
        self.first_start = 0.0

    def __enter__(self) -> Self:
        try:
            self.first_start = self.server.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._floor is not None:
            self._floor.close()
        self.server.close()
        self.double.close()

    @property
    def floor(self) -> Helper:
        if self._floor is None:
            self._floor = Helper(
                "bench.turn_floor", "--url", self.double.url, "--provider", self.provider,
                "--database", json.dumps(self.server.connect("postgres")),
            )  # fmt: skip
            self._floor.read()
        return self._floor

    # Loops.

    def _loop(self, plan: Plan, people: list[str]) -> tuple[list[Turn], dict[str, Any], Spent]:
        """Run one loop; return its turns, the double's stamps, and seconds of processor time."""
        self.double.script(default={"tokens": TOKENS})
        self.double.stamps()
        before: Spent = {}
        turns = uvloop.run(
            turn_load.run(
                self.server.url, people, plan, ready=lambda: before.update(self.server.cpu())
            )
        )
        after = self.server.cpu()
        spent = {who: after[who] - before[who] for who in after}
        return turns, self.double.stamps(), spent

    def closed(self, into: Loops, seconds: float, number: int) -> None:
        """One round of a closed loop, and one of the bare script."""
        c, name = into.concurrency, f"closed-{into.concurrency}-{number}"
        people = self.server.people(max(c, TALKERS))
        floor = self.floor
        turns, stamps, spent = self._loop(Plan(name, "closed", c, seconds), people)
        done = [t for t in turns if t.outcome == "complete"]
        into.errors += len(turns) - len(done)
        into.rates.append(per_second([t.ended for t in done], [t.due for t in done]))
        _extend(into.mira, overheads(turns, stamps))
        _extend(into.server, server_stages(turns))
        spent = {who: used * 1000 / max(1, len(done)) for who, used in spent.items()}

        floor_before, database_before = floor.cpu(), self.server.cpu()["services"]
        theirs = floor.ask(concurrency=c, seconds=seconds, name=f"floor-{name}")["turns"]
        floor_after, database_after = floor.cpu(), self.server.cpu()["services"]
        complete = [t for t in theirs if t[4] == "complete"]
        into.floor_errors += len(theirs) - len(complete)
        into.floor_rates.append(per_second([t[3] for t in complete], [t[1] for t in complete]))
        _extend(into.floor, floor_overheads(theirs, self.double.stamps()))
        count = max(1, len(complete))
        spent["floor"] = (floor_after - floor_before) * 1000 / count
        spent["floor_services"] = (database_after - database_before) * 1000 / count
        _extend(into.cpu, {who: [value] for who, value in spent.items()})

    def open(self, rate: float, seconds: float, number: int) -> tuple[dict[str, list[float]], int]:
        """An open loop: overheads by stage, and errors."""
        people = self.server.people(200)
        plan = Plan(f"open-{number}", "open", len(people), seconds, rate)
        turns, stamps, _ = self._loop(plan, people)
        failed = sum(turn.outcome != "complete" for turn in turns)
        return overheads(turns, stamps), failed

    def long(self, turns: int) -> list[Row]:
        """One conversation whose prompts are as long as they get."""
        people = self.server.people(1)
        self.double.script(default={"text": LONG_REPLY})
        uvloop.run(turn_load.run(self.server.url, people, Plan("fill", "count", 1, LONG_TURNS)))
        measured, stamps, _ = self._loop(Plan("long", "count", 1, turns), people)
        failed = sum(turn.outcome != "complete" for turn in measured)
        return [
            row(1, f"long.{stage}", values, failed)
            for stage, values in overheads(measured, stamps).items()
        ]

    # The rest.

    def fan_out(self, clients: int, rounds: int) -> Row:
        """One turn's events to many clients of one user, beside bare hypercorn."""
        [key] = self.server.people(1)
        self.double.script(default=turn_fanout.script())
        peer = Helper("bench.turn_fanout")
        try:
            url = peer.read()["url"]
            pairs = uvloop.run(turn_fanout.measure(self.server.url, key, url, clients, rounds))
        finally:
            peer.close()
        return {
            "concurrency": clients,
            "stage": "fan_out",
            "frames_per_s": round(middle([ours for ours, _ in pairs])),
            "hypercorn_frames_per_s": round(middle([theirs for _, theirs in pairs])),
            "ratio": round(middle([ours / theirs for ours, theirs in pairs]), 3),
            "ratios": [round(ours / theirs, 3) for ours, theirs in pairs],
            "errors": 0,
        }

    def pace(self, streams: int, seconds: float, tokens_per_s: float) -> Row:
        """Many streams at a steady pace: the lag of their text, and whether all of it came."""
        people = self.server.people(streams)
        ramp = max(1.0, streams / 40)
        tokens, each = max(1, round((ramp + seconds) * tokens_per_s)), 1000 / tokens_per_s
        self.double.script(default={"tokens": tokens, "token_ms": each})
        self.double.stamps()
        before = self.server.cpu()["server"]
        followed = uvloop.run(turn_pace.follow(self.server.url, people, ramp, seconds))
        spent = self.server.cpu()["server"] - before
        stamps = self.double.stamps()
        whole = [s for s in followed if s.outcome == "complete"]
        late = [(s.ended - stamps[s.marker]["done"]) * 1000 for s in whole]
        written = [stamps[s.marker]["done"] - stamps[s.marker]["first_byte"] for s in whole]
        return row(
            streams, "pace.lag", turn_pace.lags(whole, stamps, tokens, each),
            len(followed) - len(whole), tokens_per_s=tokens_per_s, seconds=seconds,
            frames_per_s_and_client=round(
                sum(len(s.frames) for s in whole) / max(1, len(whole)) / (ramp + seconds), 1
            ),
            ended_after_provider_p99_ms=round(quantile(late, 0.99), 1) if late else None,
            provider_took_s=round(middle(written), 2) if written else None,
            cpu_us_per_token=round(spent * 1e6 / streams / tokens, 1),
        )  # fmt: skip

    def starts(self, times: int) -> Row:
        """Seconds from starting the process to its first answer; the database exists already."""
        if self._floor is not None:
            self._floor.close()
            self._floor = None
        took = []
        for _ in range(times):
            self.server.stop()
            took.append(self.server.start())
        return {
            "concurrency": 0,
            "stage": "start",
            "warm_s": round(middle(took), 2),
            "all_s": [round(seconds, 2) for seconds in took],
            "first_s": round(self.first_start, 2),
            "errors": 0,
        }

    def resident(self) -> Row:
        """Memory of the server, after all that went before, and of all its processes."""
        held = self.server.resident()
        return {
            "concurrency": 0,
            "stage": "resident",
            "server_mb": round(held["server"]),
            "all_mb": round(held["all"]),
            "errors": 0,
        }


def _extend(into: dict[str, list[float]], more: dict[str, list[float]]) -> None:
    for name, values in more.items():
        into.setdefault(name, []).extend(values)
