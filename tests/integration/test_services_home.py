"""The home of a MIRA: who may have it, what it looks like, what it never touches."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mira.errors import StartupRefused
from mira.services.home import Home, write_private
from tests.integration.services_support import ROOT, short_directory


@pytest.fixture
def base() -> Iterator[Path]:
    with short_directory() as path:
        yield path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_home_is_closed_to_others_whatever_the_umask(base: Path) -> None:
    before = os.umask(0)
    try:
        home = Home(base / "home")
    finally:
        os.umask(before)
    assert mode(home.path) == (0o711 if ROOT else 0o700)
    assert {p.name: mode(p) for p in home.path.iterdir()} == {
        "keys": 0o700,
        "logs": 0o700,
        "models": 0o700,
        "lock": 0o600,
    }
    home.close()


def test_an_existing_home_that_was_opened_up_is_closed_again(base: Path) -> None:
    Home(base / "home").close()
    (base / "home").chmod(0o777)
    (base / "home" / "keys").chmod(0o755)
    home = Home(base / "home")
    assert mode(home.path) == (0o711 if ROOT else 0o700)
    assert mode(home.path / "keys") == 0o700
    home.close()


def test_a_home_can_be_had_once_at_a_time_and_again_after_it_was_given_back(base: Path) -> None:
    first = Home(base / "home")
    with pytest.raises(StartupRefused, match=f"process {os.getpid()}"):
        Home(base / "home")
    first.close()
    first.close()
    second = Home(base / "home")
    with pytest.raises(StartupRefused):
        Home(base / "home")
    second.close()


def test_a_process_that_dies_gives_its_home_back_at_once(base: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; from mira.services.home import Home; "
        "home = Home(Path(sys.argv[1])); os.kill(os.getpid(), 9)"
    )
    died = subprocess.run(
        [sys.executable, "-c", script, base / "home"], check=False, cwd=Path(__file__).parents[2]
    )
    assert died.returncode == -9
    Home(base / "home").close()


def test_a_child_process_does_not_keep_the_home_when_its_parent_lets_go(base: Path) -> None:
    home = Home(base / "home")
    child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        home.close()
        Home(base / "home").close()
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("content", ["notes.txt", "lock.txt", "pg"])
def test_a_directory_with_other_things_in_it_is_refused_and_keeps_its_mode(
    base: Path, content: str
) -> None:
    (base / content).touch()
    with pytest.raises(StartupRefused, match="not a home of MIRA"):
        Home(base)
    assert mode(base) == 0o711
    assert os.listdir(base) == [content]


def test_a_home_in_which_only_secrets_were_kept_so_far_is_taken(base: Path) -> None:
    (base / "home" / "keys").mkdir(parents=True)
    Home(base / "home").close()


def test_a_home_of_another_user_is_refused_by_name(base: Path) -> None:
    if not ROOT:
        pytest.skip("only root can give directories away")
    (base / "home").mkdir()
    os.chown(base / "home", 65534, 65534)
    with pytest.raises(StartupRefused, match="belongs to nobody") as refused:
        Home(base / "home")
    assert "as nobody" in refused.value.remedy


@pytest.mark.parametrize("place", ["/proc/nowhere/home", "/dev/null/home"])
def test_a_place_where_nothing_can_be_made_is_refused_with_the_reason(place: str) -> None:
    with pytest.raises(StartupRefused, match="cannot be used") as refused:
        Home(Path(place))
    assert "MIRA_HOME" in refused.value.remedy


def test_a_link_in_place_of_a_directory_is_refused(base: Path) -> None:
    Home(base / "home").close()
    (base / "elsewhere").mkdir(mode=0o755)
    (base / "home" / "models").rmdir()
    (base / "home" / "models").symlink_to(base / "elsewhere")
    with pytest.raises(StartupRefused, match="symbolic link"):
        Home(base / "home")
    assert mode(base / "elsewhere") == 0o755
    # The refusal gave the lock back.
    (base / "home" / "models").unlink()
    Home(base / "home").close()


def test_parents_are_never_changed(base: Path) -> None:
    (base / "a" / "b").mkdir(parents=True)
    (base / "a").chmod(0o700)
    (base / "a" / "b").chmod(0o751)
    Home(base / "a" / "b" / "home").close()
    assert mode(base / "a") == 0o700
    assert mode(base / "a" / "b") == 0o751


def test_a_written_file_replaces_a_link_and_leaves_its_target_alone(base: Path) -> None:
    target = base / "target"
    target.write_text("untouched")
    (base / "file").symlink_to(target)
    write_private(base / "file", "new")
    assert target.read_text() == "untouched"
    assert not (base / "file").is_symlink()
    assert (base / "file").read_text() == "new"
    assert mode(base / "file") == 0o600
    assert sorted(os.listdir(base)) == ["file", "target"]
