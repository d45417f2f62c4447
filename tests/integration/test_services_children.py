"""Child processes and their logs: bounded in time and in size, ended with their owner."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from mira.clock import ManualClock
from mira.errors import StartupRefused
from mira.services.children import Child, run_child, start_child
from mira.services.logs import LogFile
from mira.services.supervisor import RestartPolicy, State, Supervisor
from tests.integration.services_support import gone, running

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

UVLOOP = ("asyncio", {"use_uvloop": True})


@pytest.fixture(params=["asyncio", UVLOOP], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def log(tmp_path: Path) -> LogFile:
    return LogFile(tmp_path / "child.log", limit=1000)


async def test_a_child_gets_a_small_environment_and_writes_to_its_log(
    log: LogFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    child = await start_child(
        "env", ["sh", "-c", "env; pwd; echo problem >&2"], log=log, environment={"MORE": "yes"}
    )
    assert await child.wait() == 0
    written = log.path.read_text()
    assert "sk-secret" not in written
    assert "MORE=yes" in written
    assert "LC_ALL=C.UTF-8" in written
    assert "\n/\n" in written
    assert "problem" in written
    assert log.path.stat().st_mode & 0o777 == 0o600


async def test_what_a_child_prints_can_be_read_by_its_owner(log: LogFile) -> None:
    child = await start_child("echo", ["sh", "-c", "echo there; exec sleep 60"], log=log,
                              pipe_stdout=True)  # fmt: skip
    assert await child.stdout.readline() == b"there\n"
    assert await child.stop() == -signal.SIGTERM
    assert log.size() == 0


async def test_a_child_that_ignores_being_asked_is_killed_with_its_children(log: LogFile) -> None:
    child = await start_child(
        "stubborn",
        ["sh", "-c", "trap '' TERM INT; sleep 60 & echo $!; while :; do sleep 60; done"],
        log=log,
        pipe_stdout=True,
    )
    grandchild = int(await child.stdout.readline())
    assert await child.stop((signal.SIGINT, 0.05), (signal.SIGTERM, 0.05)) == -signal.SIGKILL
    assert await child.stop() == -signal.SIGKILL
    assert gone(child.pid, grandchild)


async def test_a_killed_child_has_taken_its_children_along_by_the_time_it_is_stopped(
    log: LogFile,
) -> None:
    # One with much memory takes the kernel a while to take apart.
    child = await start_child(
        "large",
        ["sh", "-c", '"$1" -c "$2"; exit 1', "sh", sys.executable,
         "import os, time; held = b'x' * 300_000_000; print(os.getpid(), flush=True);"
         "time.sleep(60)"],
        log=log,
        pipe_stdout=True,
    )  # fmt: skip
    grandchild = int(await child.stdout.readline())
    assert await child.stop((signal.SIGKILL, 5.0)) == -signal.SIGKILL
    assert not running(grandchild)


async def test_stopping_is_not_cut_short_by_a_cancellation(log: LogFile) -> None:
    child = await start_child("sleep", ["sleep", "60"], log=log)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await child.stop()
    assert child.returncode == -signal.SIGTERM


async def test_a_program_that_takes_too_long_is_killed_and_so_reported(log: LogFile) -> None:
    assert await run_child("quick", ["sh", "-c", "exit 3"], log=log, within=10) == 3
    assert await run_child("slow", ["sleep", "60"], log=log, within=0.05) == -signal.SIGKILL


async def test_a_program_that_is_not_there_fails_as_a_child_not_as_a_bug(log: LogFile) -> None:
    assert await run_child("none", ["/nowhere/program"], log=log, within=10) == 127
    assert "/nowhere/program" in log.path.read_text()


async def test_without_setpriv_the_remedy_names_the_package(
    log: LogFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StartupRefused) as refused:
        await start_child("sleep", ["sleep", "60"], log=log)
    assert "util-linux" in refused.value.remedy


async def test_a_log_is_set_aside_when_it_is_full_and_the_child_writes_on(log: LogFile) -> None:
    child = await start_child(
        "writer",
        [sys.executable, "-c", "import sys\nfor line in sys.stdin: pass"],
        log=log,
    )
    await child.wait()
    descriptor = log.open()
    try:
        for number in range(3):
            os.write(descriptor, f"line {number} ".encode() * 400 + b"\n")
            log.trim()
            assert log.size() == 0
        os.write(descriptor, b"last\n")
    finally:
        os.close(descriptor)
    assert log.path.read_text() == "last\n"
    aside = log.path.with_name("child.log.1")
    assert aside.stat().st_size <= 1000
    assert b"line 2" in aside.read_bytes()
    assert aside.stat().st_mode & 0o777 == 0o600


async def test_the_words_of_a_failed_start_are_those_written_since(log: LogFile) -> None:
    assert log.since(0) == ""
    log.path.write_bytes(b"earlier\n" + b"\xff later " + b"x" * 3000 + b" end\n")
    words = log.since(8, limit=20)
    assert words.endswith("xxx end")
    assert "earlier" not in log.since(8)


async def test_a_child_dies_with_a_killed_process(tmp_path: Path) -> None:
    script = """
import sys, anyio
from pathlib import Path
from mira.services.children import start_child
from mira.services.logs import LogFile
async def main():
    child = await start_child("sleep", ["sleep", "60"], log=LogFile(Path(sys.argv[1])))
    print(child.pid, flush=True)
    await child.wait()
anyio.run(main)
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", script, tmp_path / "log"],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert parent.stdout is not None
    try:
        pid = json.loads(parent.stdout.readline())
        assert running(pid)
        parent.kill()
        assert gone(pid)
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()


class Sleeper:
    """A supervised `sleep`, whose starts can be made to fail."""

    def __init__(self, log: LogFile, policy: RestartPolicy) -> None:
        self.clock = ManualClock()
        self.failing = False
        self.supervisor = Supervisor(
            "sleep",
            self._launch,
            clock=self.clock,
            log_file=log,
            policy=policy,
            stop_steps=((signal.SIGTERM, 5.0),),
        )
        self._log = log

    async def _launch(self) -> Child:
        if self.failing:
            raise StartupRefused("no bed", "find one")
        return await start_child("sleep", ["sleep", "600"], log=self._log)

    def kill(self) -> None:
        pid = self.supervisor.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    async def asleep(self, count: int) -> None:
        """Wait until `count` waits on the clock are pending: the log's, and a pause's."""
        while self.clock.sleeping != count:
            await anyio.sleep(0.002)


async def test_the_pauses_between_restarts_grow_to_a_bound_and_are_forgotten_when_steady(
    log: LogFile,
) -> None:
    policy = RestartPolicy(first=1, ceiling=4, steady=60, attempts=None)
    sleeper = Sleeper(log, policy)
    supervisor, clock = sleeper.supervisor, sleeper.clock
    await supervisor.start()
    try:
        for pause in (1, 2, 4, 4):
            await sleeper.asleep(1)
            sleeper.kill()
            await supervisor.wait_for(State.DOWN)
            await sleeper.asleep(2)
            clock.advance(pause - 0.01)
            await anyio.wait_all_tasks_blocked()
            assert supervisor.state is State.DOWN
            clock.advance(0.02)
            await supervisor.wait_for(State.UP)
        clock.advance(60)
        await sleeper.asleep(1)
        sleeper.kill()
        await supervisor.wait_for(State.DOWN)
        await sleeper.asleep(2)
        clock.advance(1)
        await supervisor.wait_for(State.UP)
        assert supervisor.deaths == 5
    finally:
        await supervisor.stop()


async def test_a_server_that_fails_to_start_again_too_often_is_given_up_with_the_last_reason(
    log: LogFile,
) -> None:
    sleeper = Sleeper(log, RestartPolicy(first=1, ceiling=1, attempts=3))
    supervisor = sleeper.supervisor
    await supervisor.start()
    sleeper.failing = True
    sleeper.kill()
    await supervisor.died()
    while supervisor.state is not State.FAILED:
        if sleeper.clock.sleeping:
            sleeper.clock.advance(1)
        await anyio.sleep(0.002)
    assert supervisor.attempts == 3
    assert supervisor.reason == "no bed"
    assert supervisor.pid is None
    await supervisor.stop()
    assert supervisor.state.value == "stopped"


async def test_stopping_in_the_middle_of_a_pause_ends_it_at_once(log: LogFile) -> None:
    sleeper = Sleeper(log, RestartPolicy(first=1000, ceiling=1000))
    await sleeper.supervisor.start()
    sleeper.kill()
    await sleeper.supervisor.died()
    await sleeper.asleep(2)
    await sleeper.supervisor.stop()
    assert sleeper.supervisor.state is State.STOPPED
    assert sleeper.clock.sleeping == 0


async def test_the_log_of_a_running_server_is_tended(log: LogFile) -> None:
    sleeper = Sleeper(log, RestartPolicy())
    await sleeper.supervisor.start()
    try:
        log.path.write_bytes(b"x" * 5000)
        await sleeper.asleep(1)
        sleeper.clock.advance(60)
        while log.size():
            await anyio.sleep(0.002)
        await sleeper.asleep(1)
    finally:
        await sleeper.supervisor.stop()
