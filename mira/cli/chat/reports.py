"""What the server says of itself, in lines for the terminal."""

from __future__ import annotations

from uuid import UUID

from mira.cli.http import Http
from mira.web.models import Status, TurnPage


async def status(http: Http) -> list[str]:
    """The server, its parts, undone work, the newest turn."""
    now = await http.get("/v1/status", Status)
    lines = [
        _line("server", f"{http.server.url}, version {now.version}, {now.status}"),
        *(_line(c.name, f"{c.status}, {c.latency_ms:.1f} ms, {c.detail}") for c in now.components),
        _line("work", f"{now.work_pending} pending, {now.dead_letters} dead letters"),
    ]
    page = await http.get("/v1/turns", TurnPage, limit=1)
    for turn in page.turns:
        told = f"turn {turn.seq}, {turn.state}, {turn.model or 'no model yet'}"
        if turn.usage is not None:
            told += f", {turn.usage.input_tokens} tokens in, {turn.usage.output_tokens} out"
        lines.append(_line("newest", told))
    return lines


async def models(http: Http) -> list[str]:
    """Which models serve which purposes."""
    now = await http.get("/v1/status", Status)
    purposes: dict[str, list[str]] = {}
    for view in now.models:
        purposes.setdefault(view.model, []).append(view.purpose)
    lines = [f"{model}: {', '.join(served)}" for model, served in purposes.items()]
    return [*lines, "MIRA_MODEL chooses, when the server starts."]


async def model_notes(http: Http) -> list[str]:
    """What must be known of the models in use."""
    now = await http.get("/v1/status", Status)
    return [view.note for view in now.models if view.note]


async def newest_turn(http: Http) -> UUID | None:
    """The newest turn of the conversation, if there is one."""
    page = await http.get("/v1/turns", TurnPage, limit=1)
    return page.turns[0].id if page.turns else None


def _line(name: str, told: str) -> str:
    return f"{name:<12} {told}"
