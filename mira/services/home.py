"""The directory in which a MIRA keeps everything it has: layout, modes, ownership.

    <home>          0700 (0711 for root, so that the database's account can pass through)
    ├ lock          who is using this home
    ├ keys/         the local key store and its master key
    ├ logs/         what the child processes print
    ├ models/       model files that were made or unpacked here
    ├ pg/           PostgreSQL's data        ┐ owned by the database's account
    ├ run/          PostgreSQL's socket      │
    ├ bin/          its binaries, if copied  ┘
    └ run-v/        Valkey's socket

Everything inside is 0700, files 0600. Parent directories are looked at and never changed.
"""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from pathlib import Path

from mira.errors import StartupRefused
from mira.services.accounts import Account
from mira.services.lock import HomeLock

#: The longest path of a Unix socket that the kernel takes, in bytes.
SOCKET_PATH_LIMIT = 107

#: What a home may hold before it was ever locked: the command line can keep secrets in it first.
_BEFORE_LOCK = {"keys"}


class Home:
    """A home that this process holds the lock of."""

    def __init__(self, path: Path) -> None:
        """Make `path` if need be, set its mode and lock it.

        Raises StartupRefused when it is in use by another process, is not ours, is some other
        directory with things in it, or cannot be made.
        """
        self.path = _claim(path)
        self.lock = HomeLock(self.path / "lock")
        made = False
        try:
            for name in ("keys", "logs", "models"):
                self.directory(name)
            made = True
        except OSError as error:
            raise StartupRefused(
                f"{self.path} cannot be used: {error.strerror}.", "See to the disk it is on."
            ) from None
        finally:
            if not made:
                self.lock.release()

    def directory(self, name: str, owner: Account | None = None) -> Path:
        """Return the sub-directory `name`, made if need be: 0700, owned by `owner` or by us."""
        return private_directory(self.path / name, owner)

    def socket_directory(self, name: str, socket: str, owner: Account | None = None) -> Path:
        """Return a 0700 directory short enough that `socket` in it can be bound.

        It is `<home>/<name>`, or, where that path is too long, a new directory under the
        system's temporary one, which the caller gives back through `discard_sockets`.
        """
        usual = self.directory(name, owner)
        if len(os.fsencode(usual / socket)) <= SOCKET_PATH_LIMIT:
            return usual
        return private_directory(Path(tempfile.mkdtemp(prefix="mira-")), owner)

    def discard_sockets(self, directory: Path) -> None:
        """Remove a directory that `socket_directory` made outside the home. Idempotent."""
        if self.path not in directory.parents:
            shutil.rmtree(directory, ignore_errors=True)

    def close(self) -> None:
        """Release the lock. Idempotent."""
        self.lock.release()


def _claim(path: Path) -> Path:
    remedy = "Set MIRA_HOME to a directory that MIRA may have for itself."
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = path.resolve(strict=True)
        entry = path.stat()
        contents = os.listdir(path)
    except OSError as error:
        raise StartupRefused(f"{path} cannot be used: {error.strerror}.", remedy) from None
    if entry.st_uid != os.geteuid():
        raise StartupRefused(
            f"{path} belongs to {user_name(entry.st_uid)}, and this process runs as "
            f"{user_name(os.geteuid())}.",
            f"Start MIRA as {user_name(entry.st_uid)}, or set MIRA_HOME to another directory.",
        )
    # A slip such as MIRA_HOME=/tmp must not change the mode of a directory that others use.
    if "lock" not in contents and not _BEFORE_LOCK.issuperset(contents):
        raise StartupRefused(f"{path} is not empty and not a home of MIRA.", remedy)
    path.chmod(0o711 if os.geteuid() == 0 else 0o700)
    return path


def private_directory(path: Path, owner: Account | None = None) -> Path:
    """Make `path` (its parent exists) if need be, 0700 and owned by `owner`; return it."""
    path.mkdir(mode=0o700, exist_ok=True)
    if path.is_symlink():
        raise StartupRefused(f"{path} is a symbolic link.", "Replace it by a directory.")
    if owner is not None and path.stat().st_uid != owner.uid:
        os.chown(path, owner.uid, owner.gid)
    path.chmod(0o700)
    return path


def write_private(path: Path, content: str, owner: Account | None = None) -> None:
    """Replace `path` by a 0600 file in one step; what stood there is never written through."""
    descriptor, name = tempfile.mkstemp(prefix=path.name + ".", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content)
            if owner is not None:
                os.fchown(file.fileno(), owner.uid, owner.gid)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


def user_name(uid: int) -> str:
    """The name of a user, or its number where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
