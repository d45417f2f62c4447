"""Where the embedded PostgreSQL lives and as whom: looked at before the start, and its files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from mira.errors import StartupRefused
from mira.services.accounts import Account, blocked_at, current_account, database_account
from mira.services.binaries import postgres_programs_for
from mira.services.cluster import MAJOR_VERSION
from mira.services.home import Home, user_name, write_private
from mira.services.postgres_config import PG_HBA, PORT, pg_ident_conf, postgresql_conf

_SOCKET = f".s.PGSQL.{PORT}"


@dataclass(frozen=True)
class Place:
    """The places of one server. Methods block."""

    #: Whom the server runs as; None is ourselves.
    account: Account | None
    programs: Path
    data: Path
    sockets: Path
    #: Whether there was a database when we looked.
    made: bool

    @property
    def socket(self) -> Path:
        return self.sockets / _SOCKET

    def status(self) -> tuple[int | None, str]:
        """Return the process id and the status that the server has written down."""
        return _noted(self.data / "postmaster.pid")

    def discard_pid_file(self) -> None:
        """Remove pid files whose number is in use; no server runs here.

        After the machine went down, numbers are given anew; and a server that was killed keeps
        its number until its parent, or who inherits it, has taken note. PostgreSQL would take
        either for an earlier server and refuse to start.
        """
        for path in (self.data / "postmaster.pid", self.sockets / f"{_SOCKET}.lock"):
            pid, _ = _noted(path)
            if pid is not None and Path(f"/proc/{pid}").exists():
                path.unlink(missing_ok=True)

    def configure(self, max_connections: int, durable: bool) -> None:
        """Write the configuration files anew."""
        for name, content in (
            ("postgresql.conf", postgresql_conf(max_connections, durable)),
            ("pg_hba.conf", PG_HBA),
            ("pg_ident.conf", pg_ident_conf(current_account().name)),
        ):
            write_private(self.data / name, content, self.account)


def _noted(path: Path) -> tuple[int | None, str]:
    """The process id and the status in a pid file of PostgreSQL."""
    try:
        lines = path.read_text().splitlines()
        return int(lines[0]), lines[7].strip() if len(lines) > 7 else ""
    except (FileNotFoundError, IndexError, ValueError):
        return None, ""


def look(home: Home) -> Place:
    """Look at accounts, directories and programs; make what is missing, but no database.

    Raises StartupRefused when the server's account cannot enter the home, or the data there is
    not its own, of another version or incomplete. Blocks; seconds when programs are copied.
    """
    account = database_account()
    if account is not None and (closed := blocked_at(home.path, account)) is not None:
        raise StartupRefused(
            f"The database runs as {account.name}, which cannot enter {closed}.",
            f"Let others pass through it (chmod o+x {closed}), or set MIRA_HOME to a directory "
            "elsewhere, such as /var/lib/mira.",
        )
    data = home.path / "pg"
    made = _look_at_data(data, (account or current_account()).uid)
    home.directory("pg", account)
    return Place(
        account=account,
        programs=postgres_programs_for(home, account),
        data=data,
        sockets=home.socket_directory("run", _SOCKET, account),
        made=made,
    )


def _look_at_data(data: Path, owner: int) -> bool:
    """Return whether there is a database. Raises StartupRefused if it is none for us."""
    if not data.exists():
        return False
    found = data.stat().st_uid
    if found != owner and any(data.iterdir()):
        raise StartupRefused(
            f"{data} belongs to {user_name(found)}, but the database runs as {user_name(owner)}.",
            f"Give it over: chown -R {user_name(owner)} {data}",
        )
    version = data / "PG_VERSION"
    if not version.exists():
        if os.listdir(data):
            raise StartupRefused(
                f"{data} is not a database, and it is not empty.",
                "Restore it from a backup, or move it away to begin anew.",
            )
        return False
    if (number := version.read_text().strip()) != MAJOR_VERSION:
        raise StartupRefused(
            f"{data} was made by PostgreSQL {number}, and this is PostgreSQL {MAJOR_VERSION}.",
            "Export with the MIRA that made it, then import into a new home.",
        )
    return True
