"""`mira segments`: the stretches of the conversation, for their owner; by the running server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Annotated, TypeVar
from urllib.parse import quote

from cyclopts import App, Parameter
from cyclopts.validators import Number

from mira.cli.asking import ask
from mira.cli.chat.reports import STEERED
from mira.cli.chat.slash import Steering
from mira.cli.http import Http
from mira.cli.output import Json, local_time, print_json, print_table, printable
from mira.cli.place import need
from mira.errors import NotFound
from mira.messages.segment import SegmentState
from mira.settings import Settings
from mira.web.segment_models import Segment, SegmentPage

app = App(
    name="segments",
    help="Look at the conversation's segments and their summaries; pause or end the open one.",
    help_format="plaintext",
)

T = TypeVar("T")
#: The largest page that the server gives.
_PAGE = 200
_STATES = {
    SegmentState.ACTIVE: "open",
    SegmentState.PAUSED: "paused",
    SegmentState.COLLAPSING: "being summed up",
    SegmentState.COLLAPSED: "ended",
}


@app.command(name="list")
def list_segments(
    *, limit: Annotated[int, Parameter(validator=Number(gte=1))] = 20, json: Json = False
) -> int:
    """List segments, newest first.

    Drift is the share of a summary's sentences that the segment does not bear out.

    Parameters
    ----------
    limit
        How many at most.
    """

    async def listed(http: Http) -> SegmentPage:
        found: list[Segment] = []
        cursor: dict[str, str] = {}
        while len(found) < limit:
            page = await http.get(
                "/v1/segments", SegmentPage, limit=min(_PAGE, limit - len(found)), **cursor
            )
            found += page.segments
            if page.next_cursor is None:
                break
            cursor = {"cursor": page.next_cursor}
        return SegmentPage(segments=tuple(found), next_cursor=None)

    page = _asked(listed)
    if json:
        print_json(page)
        return 0
    print_table(
        ("ID", "BEGAN", "LAST WORD", "STATE", "COMPLEXITY", "DRIFT", "TITLE"),
        (
            (
                str(one.id),
                local_time(one.opened_at),
                local_time(one.last_message_at),
                "summary failed" if one.trouble else _STATES[one.state],
                f"{one.summary.complexity:g}" if one.summary else "-",
                f"{one.summary.drift:.0%}" if one.summary else "-",
                one.title or "-",
            )
            for one in page.segments
        ),
    )
    return 0


@app.command
def show(
    segment: Annotated[
        str | None, Parameter(help="Its id, as in the list; without one the newest.")
    ] = None,
    *,
    json: Json = False,
) -> int:
    """Show one segment with its summary, whole."""

    async def found(http: Http) -> Segment:
        if segment is not None:
            return await http.get(f"/v1/segments/{quote(segment, safe='')}", Segment)
        newest = (await http.get("/v1/segments", SegmentPage, limit=1)).segments
        if not newest:
            raise NotFound("There is no segment yet: nothing was said.")
        return newest[0]

    one = _asked(found)
    if json:
        print_json(one)
        return 0
    print(printable(one.title or "(no title yet)"))
    print()
    for name, value in _facts(one):
        print(f"{name:<11} {value}")
    if one.summary is not None:
        print(f"\n{printable(one.summary.trace)}\n\nIn short: {printable(one.summary.precis)}")
    return 0


@app.command
def pause(*, json: Json = False) -> int:
    """Let no silence end the open segment until somebody speaks."""
    return _steered("pause", json)


@app.command
def resume(*, json: Json = False) -> int:
    """End the pause of the open segment; silence counts from now."""
    return _steered("resume", json)


@app.command
def collapse(*, json: Json = False) -> int:
    """End the open segment now; its summary and memories follow by themselves."""
    return _steered("collapse", json)


@app.command
def retry(
    segment: Annotated[str, Parameter(help="Its id, as in the list.")], *, json: Json = False
) -> int:
    """Try the summary of a segment again now that failed, without waiting for the next try."""
    path = f"/v1/segments/{quote(segment, safe='')}/retry"
    one = _asked(lambda http: http.post(path, Segment))
    if json:
        print_json(one)
    else:
        print(f"It is tried again now. See how it went with: mira segments show {one.id}")
    return 0


def _steered(act: Steering, json: bool) -> int:
    segment = _asked(lambda http: http.post(f"/v1/segments/active/{act}", Segment))
    if json:
        print_json(segment)
    else:
        print(STEERED[act])
    return 0


def _asked(question: Callable[[Http], Awaitable[T]]) -> T:
    """Ask the running server. Raises Unavailable if none runs."""

    async def asking(settings: Settings) -> T:
        async with Http(need(settings)) as http:
            return await question(http)

    return ask(asking)


def _facts(one: Segment) -> Iterator[tuple[str, str]]:
    yield "id", str(one.id)
    yield "state", _STATES[one.state]
    yield "began", local_time(one.opened_at)
    yield "last word", local_time(one.last_message_at)
    yield "tools", printable(", ".join(one.tools)) or "-"
    summary = one.summary
    if summary is None:
        yield "summary", _missing(one)
        return
    yield "complexity", f"{summary.complexity:g}"
    yield "drift", f"{summary.drift:.0%} of its sentences are not borne out by what was said"
    written = f"{local_time(summary.made_at)} by {summary.model or 'no model'}"
    checked = summary.rechecked_at
    yield "written", f"{written}, checked again {local_time(checked)}" if checked else written


def _missing(one: Segment) -> str:
    """Why there is no summary, and when one is to be expected."""
    trouble = one.trouble
    if trouble is None:
        return "written when the segment has ended"
    count = trouble.failures
    told = [f"a model failed at it {'once' if count == 1 else f'{count} times'}"] if count else []
    told += ["no model could be reached the last time"] if trouble.unreached else []
    return (
        f"{'; '.join(told)}. Next try {local_time(trouble.next_try_at)}, or now: "
        f"mira segments retry {one.id}"
    )
