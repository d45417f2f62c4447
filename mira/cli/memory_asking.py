"""What all commands on memories share: asking the server, naming a memory, reading a moment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, TypeAlias, TypeVar
from urllib.parse import quote

from cyclopts import Parameter

from mira.cli.asking import ask
from mira.cli.http import Http
from mira.cli.place import need
from mira.errors import ValidationFailed
from mira.settings import Settings

T = TypeVar("T")

Id: TypeAlias = Annotated[str, Parameter(help="A memory: mem_ and eight hex digits, or its id.")]


def asked(question: Callable[[Http], Awaitable[T]]) -> T:
    """Ask the running server. Raises Unavailable if none runs."""

    async def asking(settings: Settings) -> T:
        async with Http(need(settings)) as http:
            return await question(http)

    return ask(asking)


def path_of(memory: str) -> str:
    return f"/v1/memories/{quote(memory, safe='')}"


def aware(name: str, at: datetime | None) -> datetime | None:
    """A moment without an offset is meant in this machine's time zone."""
    if at is None or at.tzinfo is not None:
        return at
    try:
        return at.astimezone()
    except (ValueError, OverflowError):
        raise ValidationFailed(
            "A moment lies in the years 2 to 9998.", ((name, "not such a moment"),)
        ) from None
