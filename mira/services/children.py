"""The one place where child processes are started and ended.

Every child runs under `setpriv`, which drops root where an account is given and asks the kernel
to signal the child when we die. The kernel ties that to the *thread* that forked, so a child is
started through the event loop, in its thread, and lives at most as long as that thread.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio
from anyio import to_thread

from mira.errors import StartupRefused
from mira.services.accounts import Account
from mira.services.logs import LogFile
from mira.services.process_table import in_group, processes
from mira.settings import child_environment

#: How long a child may take to vanish after SIGKILL before we stop waiting for it, in seconds.
KILL_GRACE = 5.0

#: Runs between setpriv and the program: if we died before the kernel was asked to watch us, the
#: child has another parent by now and nobody who would end it.
_ONLY_UNDER_US = '[ "$PPID" = "$1" ] || exit 1; shift; exec "$@"'


def setpriv() -> str:
    """Return the path of `setpriv`. Raises StartupRefused where there is none."""
    found = shutil.which("setpriv", path=child_environment().get("PATH", os.defpath))
    if found is None:
        raise StartupRefused(
            "The program setpriv, which ties the database to this process, is not installed.",
            "Install the Debian package util-linux (apt-get install util-linux).",
        )
    return found


class Child:
    """A child process that this object owns. Made by `start_child`."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._process.returncode

    @property
    def stdout(self) -> asyncio.StreamReader:
        """What the child prints, if it was started with `pipe_stdout`."""
        if self._process.stdout is None:
            raise ValueError("the child was started without a pipe")
        return self._process.stdout

    async def wait(self) -> int:
        """Wait for the child to end and return its exit code."""
        return await self._process.wait()

    async def stop(self, *steps: tuple[signal.Signals, float]) -> int | None:
        """End the child: each signal in turn, with the seconds it is given, then SIGKILL.

        SIGKILL goes to its whole process group, since nobody else will then end its children,
        and the last of them is waited for. The default is SIGTERM and 10 seconds. Shielded from
        cancellation and bounded by the sum of the steps and KILL_GRACE. Returns the exit code,
        None if even SIGKILL did not end it. Idempotent.
        """
        with anyio.CancelScope(shield=True):
            for number, grace in (
                *(steps or ((signal.SIGTERM, 10.0),)),
                (signal.SIGKILL, KILL_GRACE),
            ):
                self._signal(number)
                with anyio.move_on_after(grace):
                    code = await self.wait()
                    if number is signal.SIGKILL:
                        await self._group_ended()
                    return code
        return self.returncode

    async def _group_ended(self) -> None:
        """Wait for what the child has started: a killed process is gone only some time later."""
        for pid in await to_thread.run_sync(processes, in_group(self.pid)):
            try:
                descriptor = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            try:
                await anyio.wait_readable(descriptor)
            finally:
                os.close(descriptor)

    def _signal(self, number: signal.Signals) -> None:
        if self.returncode is not None:
            return
        try:
            if number is signal.SIGKILL:
                os.killpg(self.pid, number)
            else:
                self._process.send_signal(number)
        except ProcessLookupError:
            pass  # It ended by itself; wait() will say so.


async def start_child(
    name: str,
    command: Sequence[str | Path],
    *,
    log: LogFile,
    death_signal: str = "KILL",
    account: Account | None = None,
    environment: Mapping[str, str] | None = None,
    pipe_stdout: bool = False,
) -> Child:
    """Start `command` and return its owner; standard error (and output) go to `log`.

    `death_signal` (a name without SIG) is sent to the child when the calling thread dies.
    `account` is the account it runs as; None is our own. `environment` is added to the small one
    that children get. The child has its own session, so a Ctrl-C in the terminal is not its
    affair. Raises StartupRefused without `setpriv`.
    """
    drop: list[str] = []
    if account is not None:
        drop = [f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups"]
    program = await to_thread.run_sync(setpriv)
    descriptor = await to_thread.run_sync(log.open)
    try:
        # A cancellation in here would leave a child that nobody owns; it comes right after.
        with anyio.CancelScope(shield=True):
            process = await asyncio.create_subprocess_exec(
                program,
                *drop,
                f"--pdeathsig={death_signal}",
                "--no-new-privs",
                "--",
                "/bin/sh",
                "-c",
                _ONLY_UNDER_US,
                "sh",
                str(os.getpid()),
                *(str(part) for part in command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE if pipe_stdout else descriptor,
                stderr=descriptor,
                cwd="/",
                env=child_environment(**(environment or {})),
                start_new_session=True,
            )
    finally:
        os.close(descriptor)
    return Child(name, process)


async def run_child(
    name: str,
    command: Sequence[str | Path],
    *,
    log: LogFile,
    within: float,
    account: Account | None = None,
) -> int:
    """Run `command` to its end and return its exit code; it is killed after `within` seconds.

    The exit code of a child that had to be killed is -9.
    """
    child = await start_child(name, command, log=log, account=account)
    try:
        with anyio.move_on_after(within):
            await child.wait()
    finally:
        await child.stop((signal.SIGKILL, KILL_GRACE))
    return -signal.SIGKILL if child.returncode is None else child.returncode
