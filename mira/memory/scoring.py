"""The score of a memory, term by term: what schema/functions/scoring.sql calculates, explained.

The database's function is the one definition; this mirror is held to it by a property test.
"""

from __future__ import annotations

from datetime import datetime
from math import exp, log
from typing import Literal

import msgspec

Form = Literal["score", "compat", "compat_v1"]

#: What an entity of a type weighs in the score of a memory.
ENTITY_WEIGHTS = {
    "PERSON": 1.0, "EVENT": 0.9, "ORG": 0.8, "PRODUCT": 0.7, "WORK_OF_ART": 0.6, "FAC": 0.4,
    "LANGUAGE": 0.3,
}  # fmt: skip
OTHER_ENTITY_WEIGHT = 0.5
_DAY = 86_400.0


class ScoreInputs(msgspec.Struct, frozen=True, kw_only=True):
    """All that a score depends on. `links` lead here; `entities` sums, over the memory's entities,
    how many others share each, by the weight of its type."""

    use_days: int
    use_day_created: int
    use_day_accessed: int | None = None
    access_count: int = 0
    mention_count: int = 0
    links: int = 0
    entities: float = 0.0
    happens_at: datetime | None = None
    expires_at: datetime | None = None


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """A score and what it is made of: `x` is the sum of the first five times the last three."""

    #: Use-days since it was made, and since it was last used.
    age: int
    idle: int
    value: float
    hub: float
    entity_hub: float
    mention: float
    newness: float
    raw: float
    recency: float
    temporal: float
    trail_off: float
    x: float
    score: float
    #: What was put in.
    given: ScoreInputs
    form: Form = "score"


def explain(given: ScoreInputs, now: datetime, form: Form = "score") -> Explanation:
    """The score at `now`, term by term."""
    first = form == "compat_v1"
    age = max(0, given.use_days - given.use_day_created)
    last = given.use_day_created if given.use_day_accessed is None else given.use_day_accessed
    idle = max(0, given.use_days - last)
    value = 0.8 * log(1 + (given.access_count * 0.95**idle / max(7, age)) / 0.02)
    hub = _hub(given.links)
    entity_hub = 0.0 if first else _entity_hub(given.entities)
    mention = 0.0 if first else _mention(given.mention_count)
    newness = 0.0 if first else max(0.0, 2.0 - 0.133 * age)
    raw = value + hub + entity_hub + mention + newness
    recency = 1 / (1 + (0.03 if first else 0.015) * idle)
    temporal = _temporal(given.happens_at, now, first)
    trail_off = _trail_off(given.expires_at, now, first)
    x = raw * recency * temporal * trail_off
    return Explanation(
        age=age, idle=idle, value=value, hub=hub, entity_hub=entity_hub, mention=mention,
        newness=newness, raw=raw, recency=recency, temporal=temporal, trail_off=trail_off, x=x,
        score=_score(x, trail_off, form), given=given, form=form,
    )  # fmt: skip


def _hub(links: int) -> float:
    over = links - 10
    return 0.04 * links if over <= 0 else 0.4 + 0.02 * over / (1 + 0.05 * over)


def _entity_hub(shared: float) -> float:
    return 0.005 * shared if shared <= 50 else 0.25 + 0.075 * log(shared / 50)


def _mention(mentions: int) -> float:
    return 0.08 * mentions if mentions <= 5 else 0.4 + 0.1 * log(1 + mentions - 5)


def _temporal(happens_at: datetime | None, now: datetime, first: bool) -> float:
    if happens_at is None:
        return 1.0
    days = (happens_at - now).total_seconds() / _DAY
    if days < 0:
        if first:
            return 0.8 * (1 + days / 14) + 0.1 if days >= -14 else 0.1
        return 0.4 * (1 + days / 45) + 0.4 if days >= -45 else 0.4
    if days <= 1:
        return 2.0
    if days <= 7:
        return 1.5
    return 1.2 if days <= 14 else 1.0


def _trail_off(expires_at: datetime | None, now: datetime, first: bool) -> float:
    if expires_at is None or now <= expires_at:
        return 1.0
    days = (now - expires_at).total_seconds() / _DAY
    return 0.0 if first or days >= 5 else 1 - days / 5


def _score(x: float, trail_off: float, form: Form) -> float:
    sigmoid = 1 / (1 + exp(2 - x))
    if form == "score":
        floor = 1 / (1 + exp(2))
        return max(0.0, (sigmoid - floor) / (1 - floor))
    return 0.0 if trail_off == 0.0 else sigmoid
