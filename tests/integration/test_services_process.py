"""The servers and the process that owns them: they live and die together."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.services_support import (
    ROOT,
    gone,
    running,
    serving,
    short_directory,
    working_in,
)

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def base() -> Iterator[Path]:
    with short_directory() as path:
        yield path


def test_a_killed_process_takes_both_servers_down_in_good_order(base: Path) -> None:
    home = base / "home"
    with serving(home) as served:
        pids = served["postgres"], served["valkey"]
        assert all(running(pid) for pid in pids)
        os.kill(served["self"], signal.SIGKILL)
        assert gone(*pids)
    assert working_in(home / "pg") == []
    log = (home / "logs" / "postgres.log").read_text()
    assert log.rstrip().endswith("database system is shut down")
    assert "not properly shut down" not in log


def test_a_process_that_follows_a_killed_one_at_once_gets_the_home_and_ends_in_good_order(
    base: Path,
) -> None:
    home = base / "home"
    with serving(home) as first:
        os.kill(first["self"], signal.SIGKILL)
        with serving(home) as second:
            assert "refused" not in second
            assert second["postgres"] != first["postgres"]
            os.kill(second["self"], signal.SIGTERM)
            assert gone(second["self"])
            assert not running(second["postgres"])
            assert not running(second["valkey"])
            assert list((home / "run").iterdir()) == []
            assert list((home / "run-v").iterdir()) == []


def test_everything_killed_at_once_is_recovered_and_a_bystander_is_told_who_is_there(
    base: Path,
) -> None:
    home = base / "home"
    with serving(home) as served:
        for name in ("self", "postgres", "valkey"):
            os.kill(served[name], signal.SIGKILL)
    with serving(home) as served:
        assert running(served["postgres"])
        with serving(home) as second:
            assert f"process {served['self']}" in second["refused"]
            assert str(home) in second["refused"]
            assert "MIRA_HOME" in second["remedy"]
        assert running(served["postgres"])
        assert running(served["valkey"])
        assert (home / "run" / ".s.PGSQL.5432").exists()
        assert (home / "run-v" / "valkey.sock").exists()


def test_an_ordinary_user_needs_no_other_account(base: Path) -> None:
    """As root, by becoming nobody, who may still read the interpreter wherever it is."""
    home = base / "ordinary"
    prefix: tuple[str, ...] = ()
    uid = os.geteuid()
    if ROOT:
        home.mkdir()
        uid = 65534
        os.chown(home, uid, uid)
        capability = "+dac_read_search"
        prefix = ("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups",
                  f"--inh-caps={capability}", f"--ambient-caps={capability}", "--")  # fmt: skip
    with serving(home, prefix) as served:
        assert "refused" not in served
        for name in ("self", "postgres", "valkey"):
            assert f"Uid:\t{uid}\t" in Path(f"/proc/{served[name]}/status").read_text()
        for directory, _, files in os.walk(home):
            assert os.stat(directory).st_mode & 0o777 == 0o700, directory
            for file in files:
                entry = os.lstat(Path(directory, file))
                assert entry.st_mode & 0o077 == 0, file
                assert entry.st_uid == uid
        os.kill(served["self"], signal.SIGTERM)
        assert gone(served["self"], served["postgres"], served["valkey"])
