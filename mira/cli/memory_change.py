"""`mira memory edit`, `annotate` and `merge-entities`: changes to what is there already."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from cyclopts import Parameter
from msgspec import UNSET, UnsetType

from mira.cli import memory_show as show_
from mira.cli.http import Http
from mira.cli.memory_asking import Id, asked, aware, path_of
from mira.cli.output import Json, print_json
from mira.errors import ValidationFailed
from mira.web.memory_models import (
    AnnotationRequest,
    Entity,
    EntityMerge,
    Memory,
    MemoryDetail,
    MemoryEdit,
    Note,
)

Date = Literal["happens-at", "expires-at"]


def edit(
    memory: Id,
    *,
    text: str | None = None,
    happens_at: datetime | None = None,
    expires_at: datetime | None = None,
    clear: Annotated[tuple[Date, ...], Parameter(negative="")] = (),
    json: Json = False,
) -> int:
    """Change the words or the dates of a memory. It can be undone.

    Parameters
    ----------
    text
        One sentence that stands by itself.
    happens_at
        When it happens; without an offset in this machine's time zone.
    expires_at
        When it stops being of use.
    clear
        A date to take away: happens-at or expires-at. May be given twice.
    """
    dates = {"happens-at": happens_at, "expires-at": expires_at}
    if text is None and not clear and not any(dates.values()):
        raise ValidationFailed(
            "Say what is to change: --text, --happens-at, --expires-at, --clear."
        )
    if both := [name for name in clear if dates[name] is not None]:
        raise ValidationFailed(f"--{both[0]} cannot be both given and cleared.")

    async def edited(http: Http) -> Memory:
        path = path_of(memory)
        # Read just before: what somebody else changes in between is refused, not overwritten.
        read = await http.get(path, MemoryDetail)
        change = MemoryEdit(
            version=read.version,
            text=UNSET if text is None else text,
            happens_at=_date("happens-at", happens_at, clear),
            expires_at=_date("expires-at", expires_at, clear),
        )
        return await http.patch(path, Memory, change)

    changed = asked(edited)
    if json:
        print_json(changed)
    else:
        print(show_.line(f"Changed {changed.short_id}: {changed.text}"))
    return 0


def annotate(memory: Id, text: str, *, json: Json = False) -> int:
    """Put a remark beside a memory, which itself stays as it is.

    Parameters
    ----------
    text
        The remark.
    """
    body = AnnotationRequest(text=text)
    made = asked(lambda http: http.post(f"{path_of(memory)}/annotations", Note, body))
    if json:
        print_json(made)
    else:
        print(f"Noted beside {memory}.")
    return 0


def merge_entities(into: UUID, *others: UUID, json: Json = False) -> int:
    """Let one entity stand for others of its type, too; their names lead to it from then on.

    Parameters
    ----------
    into
        The entity that stays, by its id as in the list: mira memory entities
    others
        Those that it stands for.
    """
    if not others:
        raise ValidationFailed("Name the entity that stays, then at least one other.")
    body = EntityMerge(into=into, others=others)
    kept = asked(lambda http: http.post("/v1/entities/merge", Entity, body))
    if json:
        print_json(kept)
    else:
        print(show_.line(f"{kept.name} ({kept.type}) now stands for {len(others)} more."))
    return 0


def _date(name: Date, at: datetime | None, clear: tuple[Date, ...]) -> datetime | UnsetType | None:
    """What the server is told of a date: a moment, null to take it away, or nothing."""
    if name in clear:
        return None
    return UNSET if at is None else aware(name.replace("-", "_"), at)
