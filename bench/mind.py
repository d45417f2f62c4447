"""The part `mind` of the turn benchmark: turns of people who have a past, with all that recalls it.

- **past**: one client, for each number of memories and of messages of history, beside the bare
  script (bench.mind_floor), in rounds that take turns;
- **crowd**: many conversations at once, beside the script at the same concurrency;
- **delay**: a Subcortex that takes its time, on the first of those groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from bench.mind_loops import Mind, Rounds
from bench.mind_people import Group
from bench.report import middle, quantile
from bench.turn_figures import Row
from bench.turn_house import House

#: Users of a group whose turns alternate, so that no live conversation gets long; of the largest
#: groups one must do.
USERS, LARGE = 4, 10_000
#: Conversations at once, and what each of them has behind it.
CROWD_MEMORIES = 1_000
#: Conversations that a slow Subcortex is tried on, at once: each of their turns takes seconds.
SLOW = 4

Step = tuple[str, Callable[[], list[Row] | None]]


class Part:
    """The steps of the part, in order, and its rows when they are done."""

    def __init__(
        self, house: House, memories: Sequence[int], history: Sequence[int],
        delays: Sequence[float], crowd: int, pause: float, *, first: bool = False,
    ) -> None:  # fmt: skip
        """`delays` in milliseconds; `crowd` conversations at once (0: none); `pause` seconds
        between the turns of the one client; `first` as in Mind."""
        self._house = house
        self._mind = Mind(house.double, house.server, house.provider, first=first)
        self._history = history
        self._crowd = crowd
        self._pause = pause
        self._delays = delays
        #: The group that history is varied for, and a slow Subcortex is tried on.
        self._main = 10_000 if 10_000 in memories else max(memories)
        self._wanted = list(
            dict.fromkeys([(m, history[0]) for m in memories] + [(self._main, h) for h in history])
        )
        self._past: list[Rounds] = []
        self._crowded: Rounds | None = None
        self._slow: list[Rounds] = []

    def steps(self, seconds: float, rounds: int) -> list[Step]:
        """What is to be done; the figures are in `rows` after it."""
        steps: list[Step] = [("people with a past", self._fill)]
        for number in range(rounds):
            for at, (memories, history) in enumerate(self._wanted):
                name = f"{memories} memories, {history} messages"
                steps.append((name, partial(self._round, at, seconds, number)))
        if self._crowd:
            steps += [
                (f"{self._crowd} with a past", partial(self._together, seconds, number))
                for number in range(rounds)
            ]
        steps += [
            (f"Subcortex {delay:g} ms late", partial(self._late, at, seconds))
            for at, delay in enumerate(self._delays)
        ]
        return [*steps, ("", self._end)]

    def rows(self) -> list[Row]:
        found: list[Row] = []
        for one in (*self._past, *self._slow):
            found += one.rows()
        found += [one.against_floor() for one in self._past]
        return found + self._histories() + self._crowd_rows() + self._delay_rows()

    # Steps.

    def _fill(self) -> None:
        wanted = [(m, h, USERS if max(m, h) <= LARGE else 1) for m, h in self._wanted]
        if self._crowd:
            wanted.append((min(CROWD_MEMORIES, self._main), self._history[0], self._crowd))
        groups = self._mind.groups(wanted)
        self._past = [Rounds(group, 1) for group in groups[: len(self._wanted)]]
        main = next(g for g in groups if (g.memories, g.history) == self._of_main())
        self._slow = [Rounds(main, min(SLOW, len(main.users)), d) for d in self._delays]
        if self._crowd:
            self._crowded = Rounds(groups[-1], self._crowd)

    def _of_main(self) -> tuple[int, int]:
        return self._main, self._history[0]

    def _round(self, at: int, seconds: float, number: int) -> None:
        self._mind.ours(self._past[at], seconds, number, self._pause)
        self._mind.floor(self._past[at], seconds, number, self._pause)

    def _together(self, seconds: float, number: int) -> None:
        assert self._crowded is not None
        self._mind.ours(self._crowded, seconds, number, 0.0)
        self._mind.floor(self._crowded, seconds, number, 0.0)

    def _late(self, at: int, seconds: float) -> None:
        self._mind.ours(self._slow[at], seconds, 0, 0.0)

    def _end(self) -> None:
        self._mind.close()

    # Figures.

    def _histories(self) -> list[Row]:
        """The longest history beside the shortest."""
        of_main = [one for one in self._past if one.group.memories == self._main]
        short = min(of_main, key=lambda one: one.group.history)
        long = max(of_main, key=lambda one: one.group.history)
        if short is long:
            return []
        ratio = long.first_text(0.5) / short.first_text(0.5)
        return [{**long.name("mind.history"), "p50_ratio": round(ratio, 3), "errors": 0}]

    def _crowd_rows(self) -> list[Row]:
        one = self._crowded
        if one is None:
            return []
        pairs = list(zip(one.rates, one.floor_rates, strict=True))
        return [
            *one.rows(),
            {
                **one.name("mind.rate"),
                "turns_per_s": round(middle(one.rates), 2),
                "floor_turns_per_s": round(middle(one.floor_rates), 2),
                "ratio": round(middle([a / b if b else 0.0 for a, b in pairs]), 3),
                "errors": one.errors,
            },
        ]

    def _delay_rows(self) -> list[Row]:
        """What each delay costs over the same turns without one."""
        group: Group | None = self._slow[0].group if self._slow else None
        quick = next((one for one in self._past if one.group is group), None)
        if quick is None:
            return []
        return [
            {
                **one.name("mind.delay"),
                "cost_ms": round(one.first_text(0.5) - quick.first_text(0.5), 1),
                "first_text_p50_ms": round(quantile(one.ours["first_text"], 0.5), 1),
                "speculative": round(one.speculative / max(1, one.turns), 3),
                "errors": one.errors,
            }
            for one in self._slow
        ]
