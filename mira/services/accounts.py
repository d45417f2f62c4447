"""Which account the database runs as, and whether it may pass through a directory."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from mira.errors import StartupRefused
from mira.settings import child_environment

#: The system account that PostgreSQL runs as when MIRA runs as root.
DATABASE_ACCOUNT = "mira-pg"


@dataclass(frozen=True)
class Account:
    """A user of the operating system."""

    name: str
    uid: int
    gid: int


def current_account() -> Account:
    """Return the account of this process. Raises StartupRefused if it has no name."""
    uid = os.geteuid()
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        raise StartupRefused(
            f"The user id {uid} has no name on this machine, and PostgreSQL needs one.",
            "Add the user to /etc/passwd, or set MIRA_DATABASE_URL to a server of your own.",
        ) from None
    return Account(entry.pw_name, uid, os.getegid())


def database_account() -> Account | None:
    """Return the account to drop to, made if absent; None when we are not root.

    Raises StartupRefused when it is absent and cannot be made.
    """
    if os.geteuid() != 0:
        return None
    found = _lookup(DATABASE_ACCOUNT)
    if found is None:
        _make(DATABASE_ACCOUNT)
        found = _lookup(DATABASE_ACCOUNT)
    if found is None or found.uid == 0:
        raise StartupRefused(
            f"The system account {DATABASE_ACCOUNT} cannot be used.",
            f"Make it by hand: useradd --system {DATABASE_ACCOUNT}",
        )
    return found


def _lookup(name: str) -> Account | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(name, entry.pw_uid, entry.pw_gid)


def _make(name: str) -> None:
    remedy = (
        f"Make the account by hand (useradd --system {name}), run MIRA as an ordinary user, "
        "or set MIRA_DATABASE_URL to a server of your own."
    )
    program = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if program is None:
        raise StartupRefused(
            f"PostgreSQL does not run as root, and useradd is not here to make {name}.", remedy
        )
    made = subprocess.run(
        [program, "--system", "--user-group", "--no-create-home", "--home-dir=/nonexistent",
         "--shell=/usr/sbin/nologin", name],
        capture_output=True, text=True, timeout=30, check=False, env=child_environment(),
    )  # fmt: skip
    # Another process that starts may have been faster, or hold the lock of the user database.
    if made.returncode != 0 and _lookup(name) is None:
        raise StartupRefused(
            f"The system account {name} cannot be made: {made.stderr.strip()[:200]}", remedy
        )


def blocked_at(path: Path, account: Account) -> Path | None:
    """Return the first directory on the way to and including `path` that `account` cannot enter.

    None when it can get there. `path` must be resolved and exist.
    """
    for directory in (*reversed(path.parents), path):
        if not _allowed(directory.stat(), account, "x"):
            return directory
    return None


def may_read(path: Path, account: Account) -> bool:
    """Whether `account`, in no further group, may read `path` (which it can reach)."""
    return _allowed(path.stat(), account, "r")


def _allowed(entry: os.stat_result, account: Account, what: str) -> bool:
    """Judge by the permission bits, as the kernel does: the first class that fits decides."""
    owner, group, other = (
        (stat.S_IXUSR, stat.S_IXGRP, stat.S_IXOTH)
        if what == "x"
        else (stat.S_IRUSR, stat.S_IRGRP, stat.S_IROTH)
    )
    if entry.st_uid == account.uid:
        return bool(entry.st_mode & owner)
    if entry.st_gid == account.gid:
        return bool(entry.st_mode & group)
    return bool(entry.st_mode & other)
