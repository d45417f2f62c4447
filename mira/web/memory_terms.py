"""The importance of a memory, term by term, with its numbers and the words of the formula."""

from __future__ import annotations

from datetime import datetime

from mira.memory.scoring import Explanation
from mira.web.memory_models import ScoreTerm


def terms(found: Explanation, now: datetime) -> tuple[ScoreTerm, ...]:
    """The terms in the order in which they are reckoned; the last is the importance itself.

    `now` is when `found` was reckoned: dates are told in days from there, negative ones past.
    """
    given, age, idle = found.given, float(found.age), float(found.idle)
    days = {"age": age, "idle": idle}
    return (
        _term("use", found.value, "0.8 × ln(1 + uses × 0.95^idle ÷ max(7, age) ÷ 0.02)",
              uses=given.access_count, **days),
        _term("links", found.hub,
              "0.04 for each link to it; after ten 0.4 + 0.02·m ÷ (1 + 0.05·m) for m more",
              links=given.links),
        _term("names", found.entity_hub,
              "0.005 for each memory that shares a name, by its kind; after fifty "
              "0.25 + 0.075 × ln(shared ÷ 50)",
              shared=given.entities),
        _term("mentions", found.mention,
              "0.08 for each time it was said again; after five 0.4 + 0.1 × ln(1 + m) for m more",
              mentions=given.mention_count),
        _term("newness", found.newness, "2 − 0.133 × age, never below 0", age=age),
        _term("sum", found.raw, "use + links + names + mentions + newness"),
        _term("recency", found.recency, "1 ÷ (1 + 0.015 × idle)", idle=idle),
        _term("date", found.temporal,
              "1 without a date; 2 on the day before it, 1.5 in the week, 1.2 in the fortnight; "
              "after it 0.8 falling to 0.4 in 45 days",
              **_days(given.happens_at, now)),
        _term("expiry", found.trail_off, "1 until it expires, then falling to 0 in 5 days",
              **_days(given.expires_at, now)),
        _term("weight", found.x, "sum × recency × date × expiry"),
        _term("importance", found.score,
              "(s(weight − 2) − s(−2)) ÷ (1 − s(−2)), with s(x) = 1 ÷ (1 + e^−x); never below 0",
              weight=found.x),
    )  # fmt: skip


def _days(at: datetime | None, now: datetime) -> dict[str, float]:
    return {} if at is None else {"days": round((at - now).total_seconds() / 86_400, 2)}


def _term(name: str, value: float, formula: str, **numbers: float) -> ScoreTerm:
    return ScoreTerm(
        name=name, value=value, formula=formula, numbers={k: float(v) for k, v in numbers.items()}
    )
