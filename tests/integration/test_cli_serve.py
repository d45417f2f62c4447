"""`mira serve` from its first word to its end."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import pytest

from tests.support.command import MIRA, mira
from tests.support.processes import ROOT, ServerProcess


@pytest.fixture
def place(fresh_server: ServerProcess) -> ServerProcess:
    """A home and a database; the server is started by the command itself."""
    return fresh_server


@contextmanager
def serving(place: ServerProcess, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """`mira serve` until it has announced itself, ended by force at the end if need be."""
    with place.log.open("ab") as log:
        process = subprocess.Popen(
            [*MIRA, "serve", *arguments],
            cwd=ROOT, env=place.environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while not (place.home / "server.json").exists():
            assert process.poll() is None, place.output()
            assert time.monotonic() < until, place.output()
            time.sleep(0.02)
        yield process
    finally:
        process.kill()
        process.wait(10)


def test_it_serves_says_where_and_leaves_nothing_behind(place: ServerProcess) -> None:
    with serving(place, "--port", "0") as process:
        told = json.loads((place.home / "server.json").read_text())
        assert httpx2.get(f"{told['url']}/v1/health/live").status_code == 200
        assert told["pid"] == process.pid
        token = place.home / "admin-token"
        assert token.stat().st_mode & 0o777 == 0o600
        assert told["url"] in place.output()
        process.send_signal(signal.SIGINT)
        assert _end(process, place) == 0
    assert not (place.home / "server.json").exists()
    assert not token.exists()


def test_a_second_one_in_the_same_home_is_refused(place: ServerProcess) -> None:
    with serving(place):
        second = mira(place.environment(), "serve")
    assert second.code == 2
    assert "is using" in second.err
    assert str(place.home) in second.err


def test_other_interfaces_want_a_key_first(place: ServerProcess) -> None:
    refused = mira(place.environment(), "serve", "--host", "0.0.0.0")
    assert refused.code == 2
    assert "mira key create" in refused.err
    assert not (place.home / "server.json").exists()
    assert mira(place.environment(), "key", "create", "--name", "remote").code == 0
    with serving(place, "--host", "0.0.0.0"):
        url = json.loads((place.home / "server.json").read_text())["url"]
        assert httpx2.get(f"{url}/v1/health/live").status_code == 200


def _end(process: subprocess.Popen[bytes], place: ServerProcess) -> int:
    try:
        return process.wait(60)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"it does not stop:\n{place.output()}") from None
