"""Dates as models write them, read as the user would."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

#: Years that a fact of somebody's life may speak of.
FIRST, LAST = 1850, 2250

_DAY = re.compile(r"\d{4}-?\d{2}-?\d{2}")


def moment(value: Any, zone: ZoneInfo, *, end: bool = False) -> datetime | None:
    """The moment that an ISO date or time means, in UTC; None if it means none.

    A time without a zone is the user's. One that a change of the clock skips is moved forward by
    as much; of one that comes twice the first is meant. A day alone means its beginning, or, with
    `end`, its last second. Impossible dates, and years outside of 1850 to 2250, mean nothing.
    """
    if not isinstance(value, str):
        return None
    text = value.strip()
    try:
        if _DAY.fullmatch(text):
            day = date.fromisoformat(text)
            if end:
                # The second before the next day begins, whenever that is on this day.
                following = datetime.combine(day + timedelta(days=1), time(), zone)
                found = following.astimezone(UTC) - timedelta(seconds=1)
            else:
                found = datetime.combine(day, time(), zone).astimezone(UTC)
        else:
            read = datetime.fromisoformat(text)
            found = (read if read.tzinfo else read.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return found if FIRST <= found.year <= LAST else None
