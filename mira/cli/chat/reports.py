"""What the server says of itself, in lines for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import msgspec

from mira.cli.chat.slash import Steering
from mira.cli.http import Http

#: What has come of a word on the open segment.
STEERED: Mapping[Steering, str] = {
    "pause": "Paused: no silence ends this segment until somebody speaks.",
    "resume": "Resumed: silence counts from now.",
    "collapse": "Ended. Its summary and memories follow; the next message opens another segment.",
}

# What is needed of the server's answers, and no more: its own models take the database's driver
# along, and with it a good part of the time in which a chat should have begun.


class _Component(msgspec.Struct, frozen=True):
    name: str
    status: str
    latency_ms: float
    detail: str


class _Model(msgspec.Struct, frozen=True):
    purpose: str
    model: str
    note: str


class _Status(msgspec.Struct, frozen=True):
    status: str
    version: str
    components: tuple[_Component, ...]
    models: tuple[_Model, ...]
    work_pending: int
    dead_letters: int


class _Usage(msgspec.Struct, frozen=True):
    input_tokens: int
    output_tokens: int


class _Turn(msgspec.Struct, frozen=True):
    id: UUID
    seq: int
    state: str
    model: str | None
    usage: _Usage | None


class _Segment(msgspec.Struct, frozen=True):
    id: UUID


class _Page(msgspec.Struct, frozen=True):
    turns: tuple[_Turn, ...]


async def status(http: Http) -> list[str]:
    """The server, its parts, undone work, the newest turn."""
    now = await http.get("/v1/status", _Status)
    lines = [
        _line("server", f"{http.server.url}, version {now.version}, {now.status}"),
        *(_line(c.name, f"{c.status}, {c.latency_ms:.1f} ms, {c.detail}") for c in now.components),
        _line("work", f"{now.work_pending} pending, {now.dead_letters} dead letters"),
    ]
    page = await http.get("/v1/turns", _Page, limit=1)
    for turn in page.turns:
        told = f"turn {turn.seq}, {turn.state}, {turn.model or 'no model yet'}"
        if turn.usage is not None:
            told += f", {turn.usage.input_tokens} tokens in, {turn.usage.output_tokens} out"
        lines.append(_line("newest", told))
    return lines


async def models(http: Http) -> list[str]:
    """Which models serve which purposes."""
    now = await http.get("/v1/status", _Status)
    purposes: dict[str, list[str]] = {}
    for view in now.models:
        purposes.setdefault(view.model, []).append(view.purpose)
    lines = [f"{model}: {', '.join(served)}" for model, served in purposes.items()]
    return [*lines, "MIRA_MODEL chooses, when the server starts."]


async def model_notes(http: Http) -> list[str]:
    """What must be known of the models in use."""
    now = await http.get("/v1/status", _Status)
    return [view.note for view in now.models if view.note]


async def newest_turn(http: Http) -> UUID | None:
    """The newest turn of the conversation, if there is one."""
    page = await http.get("/v1/turns", _Page, limit=1)
    return page.turns[0].id if page.turns else None


async def steer(http: Http, act: Steering) -> str:
    """Pause, resume or end the open segment; what that means. Raises NotFound if none is open."""
    await http.post(f"/v1/segments/active/{act}", _Segment)
    return STEERED[act]


def _line(name: str, told: str) -> str:
    return f"{name:<12} {told}"
