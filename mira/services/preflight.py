"""What must be true before anything is started, judged from facts that are gathered first.

`gather` looks at the machine, `refusals` decides: the second is pure, so that every refusal can
be shown by a test without a machine in that state. Who else uses the home is the home's lock to
say, and whether a database can be reached is its client's.
"""

from __future__ import annotations

import errno
import os
import platform
import shutil
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from mira.errors import StartupRefused
from mira.services.listeners import listener
from mira.settings import Settings, child_environment

#: Free space wanted where the home is: at the first start, and later. In bytes.
FIRST_START_BYTES = 10 * 10**9
LATER_BYTES = 2 * 10**9

OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known of the machine. `host` and `port` are where MIRA is to listen."""

    python: tuple[int, int]
    system: str
    home: Path
    first_start: bool
    free_bytes: int
    #: The directory that would have to be written to and cannot; None if all is well.
    not_writable: Path | None
    host: str
    port: int
    #: The errno with which listening fails; 0 if it does not.
    port_error: int
    #: Who listens on the port, as far as can be told.
    port_holder: str | None
    embedded: bool
    setpriv: bool


def gather(settings: Settings) -> Facts:
    """Look at the machine. Changes nothing; blocks for some milliseconds."""
    home = settings.home
    ground = _nearest_existing(home)
    port_error = _try_port(settings.host, settings.port)
    return Facts(
        python=(sys.version_info.major, sys.version_info.minor),
        system=platform.system(),
        home=home,
        first_start=not (home / "lock").exists(),
        free_bytes=shutil.disk_usage(ground).free,
        not_writable=None if os.access(ground, os.W_OK | os.X_OK) else ground,
        host=settings.host,
        port=settings.port,
        port_error=port_error,
        port_holder=listener(settings.port) if port_error == errno.EADDRINUSE else None,
        embedded=settings.database_url is None or settings.valkey_url is None,
        setpriv=shutil.which("setpriv", path=child_environment().get("PATH", os.defpath))
        is not None,
    )


def refusals(facts: Facts) -> tuple[StartupRefused, ...]:
    """Return every reason not to start, the gravest first; empty when all is well."""
    found = (
        _python(facts),
        _embedded(facts),
        _writable(facts),
        _disk(facts),
        _port(facts),
    )
    return tuple(refusal for refusal in found if refusal is not None)


def check(settings: Settings) -> None:
    """Raise the gravest StartupRefused, if there is a reason for one."""
    for refusal in refusals(gather(settings)):
        raise refusal


def _python(facts: Facts) -> StartupRefused | None:
    if facts.python >= OLDEST_PYTHON:
        return None
    needed = ".".join(map(str, OLDEST_PYTHON))
    return StartupRefused(
        f"This is Python {'.'.join(map(str, facts.python))}, and MIRA needs {needed} or newer.",
        f"Install Python {needed} or newer and make the virtual environment again with it.",
    )


def _embedded(facts: Facts) -> StartupRefused | None:
    if not facts.embedded:
        return None
    if facts.system != "Linux":
        return StartupRefused(
            f"MIRA brings its own database and cache for Linux only, and this is {facts.system}.",
            "Set MIRA_DATABASE_URL and MIRA_VALKEY_URL to servers of your own.",
        )
    if not facts.setpriv:
        return StartupRefused(
            "The program setpriv, which ties the database to this process, is not installed.",
            "Install the Debian package util-linux (apt-get install util-linux).",
        )
    return None


def _writable(facts: Facts) -> StartupRefused | None:
    if facts.not_writable is None:
        return None
    return StartupRefused(
        f"{facts.not_writable} cannot be written, and MIRA keeps its data in {facts.home}.",
        "Set MIRA_HOME to a directory that this user can write.",
    )


def _disk(facts: Facts) -> StartupRefused | None:
    needed = FIRST_START_BYTES if facts.first_start else LATER_BYTES
    if facts.free_bytes >= needed:
        return None
    when = "for its first start" if facts.first_start else "to run"
    return StartupRefused(
        f"{facts.free_bytes / 1e9:.1f} GB are free where {facts.home} is, and MIRA needs "
        f"{needed / 1e9:.0f} GB {when}.",
        "Free some space, or set MIRA_HOME to a directory on a larger disk.",
    )


def _port(facts: Facts) -> StartupRefused | None:
    place = f"{facts.host}:{facts.port}"
    match facts.port_error:
        case 0:
            return None
        case errno.EADDRINUSE:
            holder = f" by {facts.port_holder}" if facts.port_holder else ""
            other = facts.port + 1 if facts.port < 65535 else facts.port - 1
            return StartupRefused(
                f"Port {facts.port} is in use{holder}.",
                f"Stop that program, or choose another port: MIRA_PORT={other}",
            )
        case errno.EACCES | errno.EPERM:
            return StartupRefused(
                f"This user may not listen on {place}.",
                "Choose a port from 1024 up (MIRA_PORT).",
            )
        case _:
            return StartupRefused(
                f"MIRA cannot listen on {place}: {os.strerror(facts.port_error)}.",
                "Set MIRA_HOST to an address of this machine, such as 127.0.0.1.",
            )


def _nearest_existing(path: Path) -> Path:
    path = path.absolute()
    return next(place for place in (path, *path.parents) if place.exists())


def _try_port(host: str, port: int) -> int:
    """Return the errno with which listening on the address fails, 0 if it succeeds."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            # As the server does it: connections that are winding down are no hindrance.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except socket.gaierror:
        return errno.EADDRNOTAVAIL
    except OSError as error:
        return error.errno or errno.EINVAL
    return 0
