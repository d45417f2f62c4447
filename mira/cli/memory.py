"""`mira memory`: what is remembered, as the house's owner; by the running server."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

import msgspec
from cyclopts import App, Parameter
from cyclopts.validators import Number

from mira.cli import memory_show as show_
from mira.cli.http import Http
from mira.cli.memory_asking import Id, asked, aware, path_of
from mira.cli.memory_change import annotate, edit, merge_entities
from mira.cli.output import Json, print_json
from mira.errors import NotFound, ValidationFailed
from mira.memory.query import Intent
from mira.store.memories import Order
from mira.store.memory_events import LinkType
from mira.web.memory_models import (
    Entity,
    EntityPage,
    GivenEntity,
    LinkRequest,
    Memory,
    MemoryDetail,
    MemoryExplanation,
    MemoryHistory,
    MemoryLinks,
    MemoryPage,
    MemoryRequest,
    MergeRequest,
    StoredMemory,
    UndoneStep,
    UndoRequest,
)
from mira.web.recall_models import SearchAnswer, SearchSource

app = App(
    name="memory",
    help="Look at what is remembered, change it, and undo changes.",
    help_format="plaintext",
)

app.command(edit)
app.command(annotate)
app.command(merge_entities, name="merge-entities")

#: The largest page that the server gives.
_PAGE = 100

Most: TypeAlias = Annotated[int, Parameter(validator=Number(gte=1))]


@app.command(name="list")
def list_memories(
    *,
    limit: Most = 50,
    order: Order = "recent",
    archived: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
) -> int:
    """List memories, the newest or the most important first.

    Parameters
    ----------
    limit
        How many at most.
    order
        recent or importance.
    archived
        Those in the archive instead of the active ones.
    """

    async def listed(http: Http) -> MemoryPage:
        found: list[Memory] = []
        cursor: dict[str, str] = {}
        while len(found) < limit:
            page = await http.get(
                "/v1/memories", MemoryPage, limit=min(_PAGE, limit - len(found)), order=order,
                status="archived" if archived else "active", **cursor,
            )  # fmt: skip
            found += page.memories
            if page.next_cursor is None:
                break
            cursor = {"cursor": page.next_cursor}
        return MemoryPage(memories=tuple(found), next_cursor=None)

    page = asked(listed)
    if json:
        print_json(page)
    else:
        show_.memories(page.memories)
    return 0


@app.command
def add(
    text: str,
    *,
    happens_at: datetime | None = None,
    expires_at: datetime | None = None,
    about: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    json: Json = False,
) -> int:
    """Remember one fact. One that is known already is reinforced instead.

    Parameters
    ----------
    text
        One sentence that stands by itself.
    happens_at
        When it happens; without an offset in this machine's time zone.
    expires_at
        When it stops being of use.
    about
        Whom or what it is about, as "Ada:PERSON" or just "Ada". May be given several times.
    """
    body = MemoryRequest(
        text=text,
        happens_at=aware("happens_at", happens_at),
        expires_at=aware("expires_at", expires_at),
        entities=tuple(_entity(one) for one in about),
    )
    stored = asked(lambda http: http.post("/v1/memories", StoredMemory, body))
    if json:
        print_json(stored)
    else:
        show_.stored(stored)
    return 0


@app.command
def search(
    words: str,
    *,
    limit: Annotated[int, Parameter(validator=Number(gte=1, lte=50))] = 10,
    source: SearchSource = "memories",
    intent: Intent = "recall",
    as_of: datetime | None = None,
    json: Json = False,
) -> int:
    """Search by meaning and words; shows how each result was found.

    Parameters
    ----------
    words
        What to look for.
    limit
        How many at most.
    source
        memories, messages (of the conversation), or all.
    intent
        recall, explore, exact or general.
    as_of
        What was true then, and not what is true now.
    """
    query: dict[str, str | int] = {"q": words, "limit": limit, "source": source, "intent": intent}
    if (moment := aware("as_of", as_of)) is not None:
        query["as_of"] = moment.isoformat()
    found = asked(lambda http: http.get("/v1/memories/search", SearchAnswer, **query))
    if json:
        print_json(found)
    else:
        show_.hits(found)
    return 0


@app.command
def show(memory: Id, *, json: Json = False) -> int:
    """Show a memory whole: evidence, validity, annotations, links."""

    async def both(http: Http) -> tuple[MemoryDetail, MemoryLinks]:
        path = path_of(memory)
        return (
            await http.get(path, MemoryDetail),
            await http.get(f"{path}/links", MemoryLinks),
        )

    detail, linked = asked(both)
    if json:
        print_json({"memory": detail, "links": linked.links})
    else:
        show_.detail(detail, linked)
    return 0


@app.command
def history(memory: Id, *, json: Json = False) -> int:
    """List what happened to a memory, oldest first, with the ids that undo takes."""
    found = asked(lambda http: http.get(f"{path_of(memory)}/events", MemoryHistory))
    if json:
        print_json(found)
    else:
        show_.events(found.events)
    return 0


@app.command
def undo(memory: Id, event: str | None = None, *, json: Json = False) -> int:
    """Undo a step of a memory's history, whole; the undo can be undone too.

    Parameters
    ----------
    event
        Its id, as in the history; without one the newest step that can be undone.
    """

    async def undone(http: Http) -> UndoneStep:
        path = path_of(memory)
        events = (await http.get(f"{path}/events", MemoryHistory)).events
        wanted = [one for one in events if (one.undo if event is None else str(one.id) == event)]
        if not wanted:
            raise NotFound("There is no such step to undo. See: mira memory history")
        return await http.post(f"{path}/undo", UndoneStep, UndoRequest(event_id=wanted[-1].id))

    done = asked(undone)
    if json:
        print_json(done)
    else:
        for one in done.events:
            print(show_.line(one.summary))
    return 0


@app.command
def archive(memory: Id, *, json: Json = False) -> int:
    """Take a memory out of every search; it can be restored."""
    return _changed(memory, "archive", json)


@app.command
def restore(memory: Id, *, json: Json = False) -> int:
    """Take a memory back from the archive."""
    return _changed(memory, "restore", json)


@app.command
def delete(memory: Id, *, yes: Annotated[bool, Parameter(negative="")] = False) -> int:
    """Delete a memory and its words for good. This cannot be undone.

    Parameters
    ----------
    yes
        Needed, since there is no way back.
    """
    if not yes:
        raise ValidationFailed("This cannot be undone; archive it instead, or add --yes.")
    asked(lambda http: http.delete(path_of(memory)))
    print(f"Deleted {memory}.")
    return 0


@app.command
def link(memory: Id, type: LinkType, other: Id, *, reason: str = "", json: Json = False) -> int:  # noqa: A002
    """Say how one memory stands to another: mira memory link mem_a refines mem_b.

    Parameters
    ----------
    type
        How it stands to the other.
    reason
        Why.
    """
    body = LinkRequest(to=other, type=type, reason=reason)
    found = asked(lambda http: http.post(f"{path_of(memory)}/links", MemoryLinks, body))
    if json:
        print_json(found)
    else:
        show_.links(found)
    return 0


@app.command
def merge(*memories: Id, text: str, json: Json = False) -> int:
    """Make one memory of several; they are archived.

    Parameters
    ----------
    text
        One sentence that says what all of them say.
    """
    body = MergeRequest(ids=memories, text=text)
    made = asked(lambda http: http.post("/v1/memories/merge", Memory, body))
    if json:
        print_json(made)
    else:
        print(show_.line(f"Merged into {made.short_id}: {made.text}"))
    return 0


@app.command
def explain(memory: Id, *, json: Json = False) -> int:
    """Print why a memory matters as much as it does: the score term by term."""
    found = asked(lambda http: http.get(f"{path_of(memory)}/explain", MemoryExplanation))
    if json:
        print_json(found)
    else:
        show_.explanation(found)
    return 0


@app.command
def entities(name: str = "", *, limit: Most = 50, json: Json = False) -> int:
    """List whom and what memories are about, those of most memories first.

    Parameters
    ----------
    name
        A part of the name.
    limit
        How many at most.
    """

    async def listed(http: Http) -> EntityPage:
        found: list[Entity] = []
        query: dict[str, str] = {"q": name} if name else {}
        while len(found) < limit:
            more = min(_PAGE, limit - len(found))
            page = await http.get("/v1/entities", EntityPage, limit=more, **query)
            found += page.entities
            if page.next_cursor is None:
                break
            query["cursor"] = page.next_cursor
        return EntityPage(entities=tuple(found), next_cursor=None)

    page = asked(listed)
    if json:
        print_json(page)
    else:
        show_.entities(page.entities)
    return 0


def _changed(memory: str, act: Literal["archive", "restore"], json: bool) -> int:
    changed = asked(lambda http: http.post(f"{path_of(memory)}/{act}", Memory))
    if json:
        print_json(changed)
    else:
        print(show_.line(f"{changed.short_id} is {changed.status}: {changed.text}"))
    return 0


def _entity(given: str) -> GivenEntity:
    name, _, kind = given.rpartition(":")
    try:
        return msgspec.convert(
            {"name": name or given, "type": kind.upper() if name else "OTHER"}, GivenEntity
        )
    except msgspec.ValidationError as error:
        raise ValidationFailed(f"--about {given!r}: {error}.") from None
