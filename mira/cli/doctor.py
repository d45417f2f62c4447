"""`mira doctor`: every part looked at, and what is wrong said with what to do about it."""

from __future__ import annotations

import platform
import shutil
import stat
from collections.abc import Iterator

import msgspec

from mira import __version__
from mira.cli.asking import ask
from mira.cli.house import open_house
from mira.cli.output import Json, local_time, one_line, print_json, print_table
from mira.cli.place import Server, find
from mira.errors import MiraError, StartupRefused
from mira.services.preflight import LATER_BYTES
from mira.settings import Settings
from mira.web.models import Component, ModelView, Status
from mira.web.summary_health import SummaryHealth


class ServerView(msgspec.Struct, frozen=True, kw_only=True):
    """The running server, if any. Its uptime is in seconds."""

    running: bool
    url: str | None = None
    pid: int | None = None
    version: str | None = None
    uptime_seconds: float | None = None
    connections: int | None = None


class HomeView(msgspec.Struct, frozen=True, kw_only=True):
    """Where everything is kept. `mode` is octal text; None while there is no home yet."""

    path: str
    mode: str | None
    free_bytes: int


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is wrong: where, what, and what to do about it."""

    part: str
    what: str
    remedy: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What doctor found. `ok` is true when there are no faults.

    Work and summaries are None where the database could not be asked.
    """

    ok: bool
    version: str
    python: str
    server: ServerView
    home: HomeView
    components: tuple[Component, ...] = ()
    models: tuple[ModelView, ...] = ()
    work_pending: int | None = None
    work_due: int | None = None
    dead_letters: int | None = None
    summaries: SummaryHealth | None = None
    faults: tuple[Fault, ...] = ()


def doctor(*, json: Json = False) -> int:
    """Look at every part. Exit code 1 when something is wrong.

    With no server running, the database is started for the examination; that none runs is
    said, and is no fault.
    """
    report = ask(_examine)
    if json:
        print_json(report)
    else:
        _print(report)
    return 0 if report.ok else 1


async def _examine(settings: Settings) -> Report:
    home = _home(settings)
    server: Server | None = None
    status: Status | None = None
    faults = list(_home_faults(home))
    try:
        server = find(settings)
        async with open_house(settings) as house:
            status = await house.status()
    except* MiraError as errors:
        faults.extend(_failure(error) for error in _leaves(errors))
    if status is not None:
        faults.extend(_status_faults(status))
    return Report(
        ok=not faults,
        version=__version__,
        python=platform.python_version(),
        server=_server(server, status),
        home=home,
        components=status.components if status else (),
        models=status.models if status else (),
        work_pending=status.work_pending if status else None,
        work_due=status.work_due if status else None,
        dead_letters=status.dead_letters if status else None,
        summaries=status.summaries if status else None,
        faults=tuple(faults),
    )


def _home(settings: Settings) -> HomeView:
    path = settings.home
    nearest = next(p for p in (path, *path.absolute().parents) if p.exists())
    return HomeView(
        path=str(path),
        mode=f"{stat.S_IMODE(path.stat().st_mode):04o}" if path.exists() else None,
        free_bytes=shutil.disk_usage(nearest).free,
    )


def _home_faults(home: HomeView) -> Iterator[Fault]:
    if home.free_bytes < LATER_BYTES:
        yield Fault(
            part="disk",
            what=f"{_size(home.free_bytes)} are free where {home.path} is.",
            remedy=f"Free some space: MIRA does not start below {_size(LATER_BYTES)}.",
        )
    # For root the database's account passes through the home: 0711.
    if home.mode is not None and int(home.mode, 8) & 0o066:
        yield Fault(
            part="home",
            what=f"{home.path} can be read by others (mode {home.mode}).",
            remedy=f"chmod 0700 {home.path}",
        )


def _failure(error: MiraError) -> Fault:
    remedy = error.remedy if isinstance(error, StartupRefused) else "See the server's log."
    return Fault(part="server", what=error.detail, remedy=remedy)


def _status_faults(status: Status) -> Iterator[Fault]:
    for component in status.components:
        if component.status != "ok":
            yield Fault(
                part=component.name,
                what=f"It does not work: {component.detail}.",
                remedy="See the server's log."
                if component.critical
                else "Nothing is lost without it; see the server's log.",
            )
    if status.dead_letters:
        some = "is 1 dead letter" if status.dead_letters == 1 else (
            f"are {status.dead_letters} dead letters"
        )  # fmt: skip
        yield Fault(
            part="work",
            what=f"There {some}: work that was given up.",
            remedy="Look at it with: mira dead-letters list",
        )
    for segment in status.summaries.overdue:
        yield Fault(
            part="segments",
            what=f"The segment {segment.id}, which ended {local_time(segment.ended_at)}, has no "
            "summary yet.",
            remedy="Nothing of it is lost, and it is tried again every day. See whether the model "
            "for summaries answers (MIRA_MODEL_SUMMARY, the server's log), then try it again now: "
            "mira segments retry ID. If that fails, too: mira dead-letters list",
        )
    if status.version != __version__:
        yield Fault(
            part="server",
            what=f"It runs version {status.version}, and this command is {__version__}.",
            remedy="Restart the server.",
        )


def _server(server: Server | None, status: Status | None) -> ServerView:
    if server is None:
        return ServerView(running=False)
    return ServerView(
        running=True,
        url=server.url,
        pid=server.pid,
        version=status.version if status else None,
        uptime_seconds=status.uptime_seconds if status else None,
        connections=status.connections if status else None,
    )


def _leaves(group: BaseExceptionGroup[MiraError]) -> Iterator[MiraError]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


def _print(report: Report) -> None:
    server = report.server
    print(f"MIRA {report.version} on Python {report.python}")
    if not server.running:
        print("server      not running")
    elif server.uptime_seconds is not None:
        print(
            f"server      {server.url}, process {server.pid}, up {server.uptime_seconds:.0f} s, "
            f"{server.connections} connections"
        )
    else:
        print(f"server      {server.url}, process {server.pid}")
    home = report.home
    print(f"home        {home.path}, mode {home.mode or '-'}, {_size(home.free_bytes)} free")
    if report.work_pending is not None:
        print(
            f"work        {report.work_pending} pending, {report.work_due} due, "
            f"{report.dead_letters} dead letters"
        )
    if report.summaries is not None:
        print(f"summaries   {_drift(report.summaries)}")
    if report.components:
        print()
        print_table(
            ("PART", "STATUS", "LATENCY", "DETAIL"),
            ((c.name, c.status, f"{c.latency_ms:.1f} ms", c.detail) for c in report.components),
        )
    if report.models:
        print()
        print_table(("PURPOSE", "MODEL"), ((m.purpose, m.model) for m in report.models))
        for model in report.models:
            if model.note:
                print(f"\n{model.purpose}: {one_line(model.note, 1000)}")
    print()
    for fault in report.faults:
        print(f"✗ {fault.part}: {one_line(fault.what, 1000)}\n  {fault.remedy}")
    if report.ok:
        print(
            "✓ Nothing is wrong with what was looked at. (Models are asked only when they answer.)"
        )


def _drift(health: SummaryHealth) -> str:
    """How true the newest summaries are, in a line."""
    if not health.looked_at:
        return "none yet"
    told = f"newest {health.looked_at}: mean drift {health.mean_drift:.0%}"
    if health.worst is None:
        return told
    return f"{told}, worst {health.worst_drift:.0%} (mira segments show {health.worst})"


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
