"""What the server says of itself, in lines for the terminal."""

from __future__ import annotations

from uuid import UUID

from mira.cli.http import Http
from mira.web.models import Status, TurnPage


async def status(http: Http) -> list[str]:
    """The server, its parts, the newest turn."""
    now = await http.get("/v1/status", Status)
    lines = [
        f"server   {http.server.url}, version {now.version}, {now.status}, "
        f"up {now.uptime_seconds:.0f} s",
        *(
            f"{c.name:<12} {c.status}, {c.latency_ms:.1f} ms, {c.detail}" for c in now.components
        ),
        f"work     {now.work_pending} pending, {now.dead_letters} dead letters",
    ]  # fmt: skip
    page = await http.get("/v1/turns", TurnPage, limit=1)
    for turn in page.turns:
        usage = turn.usage
        tokens = (
            f", {usage.input_tokens} tokens in, {usage.output_tokens} out" if usage else ""
        )  # fmt: skip
        lines.append(f"newest   turn {turn.seq}, {turn.state}, by {turn.model or '-'}{tokens}")
    return lines


async def models(http: Http) -> list[str]:
    """Which model serves which purpose, and what must be known of it."""
    now = await http.get("/v1/status", Status)
    lines = [f"{model.purpose:<13} {model.model}" for model in now.models]
    lines.extend(f"· {model.note}" for model in now.models if model.note)
    lines.append("MIRA_MODEL chooses when the server starts.")
    return lines


async def newest_turn(http: Http) -> UUID | None:
    """The newest turn of the conversation, if there is one."""
    page = await http.get("/v1/turns", TurnPage, limit=1)
    return page.turns[0].id if page.turns else None
