"""The score: the database's formula, its mirror, and what decay does over use-days."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mira.memory.scoring import Form, ScoreInputs, explain
from tests.conftest import Place
from tests.support.processes import run_apart

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)

_SQL = """
select memory_score(a, b, c, d, e, f, g, h, i, j, form) as score
from unnest($1::integer[], $2::integer[], $3::integer[], $4::integer[], $5::integer[],
  $6::bigint[], $7::double precision[], $8::timestamptz[], $9::timestamptz[], $10::timestamptz[])
  with ordinality as row(a, b, c, d, e, f, g, h, i, j, n)
cross join unnest($11::text[]) with ordinality as forms(form, m)
order by n, m
"""
FORMS: tuple[Form, ...] = ("score", "compat", "compat_v1")


def by_database(place: Place, rows: list[ScoreInputs], nows: list[datetime]) -> list[list[float]]:
    """The scores of each row, in every form, as the database calculates them."""

    async def run() -> list[float]:
        connection = await asyncpg.connect(**place.app)
        try:
            found = await connection.fetch(
                _SQL,
                [r.use_days for r in rows], [r.use_day_created for r in rows],
                [r.use_day_accessed for r in rows], [r.access_count for r in rows],
                [r.mention_count for r in rows], [r.links for r in rows],
                [r.entities for r in rows], [r.happens_at for r in rows],
                [r.expires_at for r in rows], nows, list(FORMS),
            )  # fmt: skip
            return [row["score"] for row in found]
        finally:
            await connection.close()

    flat = run_apart(run())
    return [flat[at : at + len(FORMS)] for at in range(0, len(flat), len(FORMS))]


moments = st.integers(-270 * 24, 300 * 24).map(lambda hours: NOW + timedelta(hours=hours))
near = st.integers(-60 * 24, 60 * 24).map(lambda hours: NOW + timedelta(hours=hours))
inputs = st.builds(
    ScoreInputs,
    use_days=st.integers(0, 1500) | st.just(100_000),
    use_day_created=st.integers(0, 1500),
    use_day_accessed=st.none() | st.integers(0, 1500),
    access_count=st.integers(0, 500),
    mention_count=st.integers(0, 60),
    links=st.integers(0, 200),
    entities=st.integers(0, 50_000).map(lambda tenths: tenths / 10),
    happens_at=st.none() | moments | near,
    expires_at=st.none() | moments | near,
)


@settings(
    max_examples=12,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(rows=st.lists(st.tuples(inputs, st.just(NOW) | moments), min_size=20, max_size=200))
def test_the_explanation_gives_the_score_that_the_database_gives(
    place: Place, rows: list[tuple[ScoreInputs, datetime]]
) -> None:
    calculated = by_database(place, [row for row, _ in rows], [now for _, now in rows])
    for (row, now), scores in zip(rows, calculated, strict=True):
        for form, score in zip(FORMS, scores, strict=True):
            assert explain(row, now, form).score == pytest.approx(score, abs=0.001)


def fresh(**fields: object) -> ScoreInputs:
    return ScoreInputs(**{"use_days": 0, "use_day_created": 0, **fields})  # type: ignore[arg-type]


@dataclass(frozen=True)
class Reference:
    name: str
    given: ScoreInputs
    score: float


REFERENCES = [
    Reference("a fresh memory", fresh(), 0.500),
    Reference("fresh, with an event within a day",
              fresh(happens_at=NOW + timedelta(hours=12)), 0.881),
    Reference("untouched for fifteen use-days", fresh(use_days=15), 0.120),
    Reference("ten uses, twenty use-days old, used today",
              fresh(use_days=20, access_count=10, use_day_accessed=20), 0.647),
    Reference("ten uses, twenty use-days old, not used since",
              fresh(use_days=20, access_count=10, use_day_accessed=0), 0.358),
    Reference("five uses, thirty use-days old, idle for five",
              fresh(use_days=30, access_count=5, use_day_accessed=25), 0.376),
    Reference("used once on its first day", fresh(access_count=1, use_day_accessed=0), 0.843),
]  # fmt: skip


def test_the_compatible_form_has_the_reference_values(place: Place) -> None:
    calculated = by_database(place, [r.given for r in REFERENCES], [NOW] * len(REFERENCES))
    for reference, (_, compat, _) in zip(REFERENCES, calculated, strict=True):
        assert compat == pytest.approx(reference.score, abs=0.0005), reference.name
        assert explain(reference.given, NOW, "compat").score == pytest.approx(compat, abs=1e-9)


def test_what_expired_more_than_five_days_ago_is_worth_nothing_in_any_form(place: Place) -> None:
    gone = fresh(access_count=50, expires_at=NOW - 6 * DAY)
    assert by_database(place, [gone], [NOW]) == [[0.0, 0.0, 0.0]]


def test_both_forms_give_the_same_order_but_only_the_compatible_one_has_a_floor() -> None:
    rows = [fresh(use_days=n, access_count=n % 4) for n in range(60)]
    scores = [explain(r, NOW).score for r in rows]
    compat = [explain(r, NOW, "compat").score for r in rows]
    assert sorted(range(60), key=scores.__getitem__) == sorted(range(60), key=compat.__getitem__)
    assert min(scores) < 0.001 < 0.119 < min(compat)


@given(row=inputs, days=st.integers(0, 4000))
def test_calendar_time_alone_changes_nothing_that_has_no_date(row: ScoreInputs, days: int) -> None:
    undated = ScoreInputs(
        **{n: getattr(row, n) for n in row.__struct_fields__ if not n.endswith("_at")}
    )
    assert explain(undated, NOW + days * DAY) == explain(undated, NOW)


@given(row=inputs, more=st.integers(1, 50))
def test_more_of_what_earns_its_keep_never_lowers_a_score(row: ScoreInputs, more: int) -> None:
    def score(**changed: object) -> float:
        fields = {n: getattr(row, n) for n in row.__struct_fields__} | changed
        return explain(ScoreInputs(**fields), NOW).score

    now = score()
    assert score(access_count=row.access_count + more) >= now
    assert score(mention_count=row.mention_count + more) >= now
    assert score(links=row.links + more) >= now
    assert score(entities=row.entities + more) >= now


@given(row=inputs, more=st.integers(1, 50))
def test_a_use_day_without_use_never_raises_the_score_of_what_has_no_date(
    row: ScoreInputs, more: int
) -> None:
    fields = {n: getattr(row, n) for n in row.__struct_fields__ if not n.endswith("_at")}
    fields["use_day_created"] = min(row.use_day_created, row.use_days)
    fields["use_day_accessed"] = (
        None if row.use_day_accessed is None else min(row.use_day_accessed, row.use_days)
    )
    later = fields | {"use_days": row.use_days + more}
    assert (
        explain(ScoreInputs(**later), NOW).score
        <= explain(ScoreInputs(**fields), NOW).score + 1e-12
    )


@given(mentions=st.integers(0, 3), uses=st.integers(0, 20))
def test_an_untouched_memory_sinks_under_the_floor_in_a_bounded_number_of_use_days(
    mentions: int, uses: int
) -> None:
    given_ = fresh(use_days=400, mention_count=mentions, access_count=uses, use_day_accessed=0)
    if mentions == 0:
        assert explain(fresh(use_days=16, access_count=0), NOW).score < 0.02
    assert explain(given_, NOW).score < 0.02


def test_a_memory_that_is_used_every_other_week_stays() -> None:
    lowest = min(
        explain(
            fresh(use_days=day, access_count=day // 10, use_day_accessed=day // 10 * 10), NOW
        ).score
        for day in range(10, 2000)
    )
    assert lowest > 0.1
