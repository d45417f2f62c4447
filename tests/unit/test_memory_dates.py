"""Dates as models write them, read by the user's own clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mira.memory.dates import moment

VIENNA, APIA, KIRITIMATI = (
    ZoneInfo(z) for z in ("Europe/Vienna", "Pacific/Apia", "Pacific/Kiritimati")
)


@pytest.mark.parametrize(
    ("value", "zone", "iso"),
    [
        ("2026-03-14", VIENNA, "2026-03-13T23:00:00"),
        ("2026-03-14T18:30", VIENNA, "2026-03-14T17:30:00"),
        ("2026-03-14 18:30:00", VIENNA, "2026-03-14T17:30:00"),
        ("2026-03-14T18:30Z", VIENNA, "2026-03-14T18:30:00"),
        ("2026-03-14T18:30-05:00", VIENNA, "2026-03-14T23:30:00"),
        ("2026-03-14", KIRITIMATI, "2026-03-13T10:00:00"),
        # Half past two does not exist on this night: as much later.
        ("2026-03-29T02:30", VIENNA, "2026-03-29T01:30:00"),
        # And comes twice on this one: the first is meant.
        ("2026-10-25T02:30", VIENNA, "2026-10-25T00:30:00"),
        ("2028-02-29", VIENNA, "2028-02-28T23:00:00"),
        # Samoa left this whole day out.
        ("2011-12-30T12:00", APIA, "2011-12-30T22:00:00"),
    ],
)
def test_a_date_is_read_by_the_clock_of_the_user(value: str, zone: ZoneInfo, iso: str) -> None:
    assert moment(value, zone) == datetime.fromisoformat(iso).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    ["2026-02-30", "2027-02-29", "2026-13-01", "2026-03-14T25:00", "0001-01-01", "9999-12-31",
     "9999-12-31T23:59-12:00", "tomorrow", "next week", "", "2026", None, 20260314, [], {}],
)  # fmt: skip
def test_an_impossible_date_means_nothing(value: Any) -> None:
    for zone in (VIENNA, KIRITIMATI):
        assert moment(value, zone) is None
        assert moment(value, zone, end=True) is None


def test_the_end_of_a_day_is_its_last_second_however_long_it_is() -> None:
    for day, hours in (("2026-03-28", 24), ("2026-03-29", 23), ("2026-10-25", 25)):
        begin, end = moment(day, VIENNA), moment(day, VIENNA, end=True)
        assert begin is not None
        assert end is not None
        assert end - begin == timedelta(hours=hours) - timedelta(seconds=1)


@given(
    st.datetimes(
        min_value=datetime.fromisoformat("1900-01-01"),
        max_value=datetime.fromisoformat("2200-01-01"),
    ),
    st.sampled_from([VIENNA, APIA, KIRITIMATI, ZoneInfo("Etc/GMT+12"), ZoneInfo("Asia/Kolkata")]),
)
def test_every_time_of_the_users_clock_is_read_as_that_time(at: datetime, zone: ZoneInfo) -> None:
    found = moment(at.isoformat(), zone)
    assert found is not None
    back = found.astimezone(zone).replace(tzinfo=None)
    # Only what a change of the clock skips is moved.
    assert back == at or back - at <= timedelta(hours=24)


@given(st.text(max_size=40))
def test_no_text_makes_reading_a_date_fail(text: str) -> None:
    found = moment(text, VIENNA)
    assert found is None or found.tzinfo is UTC
