"""Makes a PostgreSQL data directory: whole or not at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from anyio import to_thread

from mira.errors import StartupRefused
from mira.services.accounts import Account
from mira.services.children import run_child
from mira.services.home import private_directory
from mira.services.logs import LogFile

MAJOR_VERSION = "18"


async def make_cluster(
    data: Path,
    programs: Path,
    account: Account | None,
    *,
    database: str,
    durable: bool,
    log: LogFile,
) -> None:
    """Make a cluster with one more database in it at `data`, an empty or absent directory.

    It is made beside `data` and moved there when it is complete, so that a start that was
    broken off leaves nothing half made. Takes one to a few seconds. Raises StartupRefused with
    the last words of the program that failed.
    """
    part = part_of(data)
    await to_thread.run_sync(_begin, part, account)
    options = [] if durable else ["--no-sync"]
    await _run(
        [programs / "initdb", "-D", part, "-U", "postgres", "--encoding=UTF8",
         "--locale-provider=builtin", "--builtin-locale=C.UTF-8",
         "--auth-local=peer", "--auth-host=reject", *options],
        account, log,
    )  # fmt: skip
    # The database is made without a server, by the program that initdb itself uses.
    await _run(
        ["/bin/sh", "-c", 'name=$1; shift; echo "CREATE DATABASE $name" | "$@"', "sh", database,
         programs / "postgres", "--single", "-D", part,
         "-c", f"fsync={'on' if durable else 'off'}", "postgres"],
        account, log,
    )  # fmt: skip
    await to_thread.run_sync(_finish, part, data)


def part_of(data: Path) -> Path:
    """Return the directory in which the cluster for `data` is made."""
    return data.with_name(data.name + ".part")


async def _run(command: list[str | Path], account: Account | None, log: LogFile) -> None:
    offset = await to_thread.run_sync(log.size)
    code = await run_child(str(command[0]), command, log=log, within=120.0, account=account)
    words = await to_thread.run_sync(log.since, offset)
    # The single-user server ends with 0 even when a statement fails.
    if code != 0 or "ERROR:" in words or "FATAL:" in words:
        raise StartupRefused(
            f"The database cannot be made (exit code {code}): {words}", f"See {log.path}."
        )


def _begin(part: Path, account: Account | None) -> None:
    shutil.rmtree(part, ignore_errors=True)
    private_directory(part, account)


def _finish(part: Path, data: Path) -> None:
    if data.exists():
        data.rmdir()
    part.rename(data)
    parent = os.open(data.parent, os.O_RDONLY)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)
