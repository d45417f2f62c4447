"""How times are written in prompts. In cached sections always as dates, never as "ago"."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

_UNITS = ((365, "year"), (30, "month"), (7, "week"), (1, "day"))


def local(at: datetime, timezone: str) -> datetime:
    """`at` on the clock of `timezone`. Raises ZoneInfoNotFoundError."""
    return at.astimezone(ZoneInfo(timezone))


def stamp(at: datetime, timezone: str) -> str:
    """Date and time in the user's zone: `2026-03-01 14:05`."""
    return local(at, timezone).strftime("%Y-%m-%d %H:%M")


def span(start: datetime, end: datetime | None, timezone: str, *, dated: bool = True) -> str:
    """`2026-03-01 14:05 – 15:40`; the end with its date where that is another, ACTIVE where there
    is no end; without the first date if not `dated`."""
    begin = local(start, timezone)
    first = begin.strftime("%Y-%m-%d %H:%M" if dated else "%H:%M")
    if end is None:
        return f"{first} – ACTIVE"
    finish = local(end, timezone)
    same_day = finish.date() == begin.date()
    return f"{first} – {finish.strftime('%H:%M' if same_day else '%Y-%m-%d %H:%M')}"


def in_words(span: timedelta) -> str:
    """A span of time as a person would say it: its largest whole unit, up to days."""
    minutes = int(span.total_seconds() // 60)
    for size, name in ((60 * 24, "day"), (60, "hour"), (1, "minute")):
        if minutes >= size:
            return _counted(minutes // size, name)
    return "less than a minute"


def age(since: timedelta) -> str:
    """How old something is, as coarse as a person would say it: `3 months ago`, `today`."""
    for size, name in _UNITS:
        if since.days >= size:
            return f"{_counted(since.days // size, name)} ago"
    return "today"


def _counted(count: int, name: str) -> str:
    return f"{count} {name}{'' if count == 1 else 's'}"
