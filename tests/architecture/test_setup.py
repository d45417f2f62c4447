"""The set-up: says what is missing and how to get it, and does nothing twice."""

from __future__ import annotations

import ast
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.architecture.tree import ROOT, read


@pytest.fixture
def setup(tmp_path: Path) -> ModuleType:
    """The set-up script of a copy of this checkout, which has no environment yet."""
    locks = ("requirements.lock", "requirements-dev.lock", "requirements-torch.lock")
    for name in (*locks, "pyproject.toml", "scripts"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    spec = importlib.util.spec_from_file_location("house_setup", tmp_path / "scripts" / "setup.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_python_too_old_can_read_the_script_that_tells_it_so() -> None:
    tree = ast.parse(read("scripts/setup.py"), feature_version=(3, 7))
    first = next(node for node in tree.body if isinstance(node, ast.If))
    assert ast.unparse(first.test) == "sys.version_info < (3, 11)"
    before = [node for node in tree.body if node.lineno < first.lineno][1:]
    assert [ast.unparse(node) for node in before] == ["import sys"]


def test_a_missing_program_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "setup.py")],
        env={"PATH": str(tmp_path / "bin")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Missing: setpriv" in done.stderr
    assert "apt-get install" in done.stderr
    assert "util-linux" in done.stderr


FAKE = """#!/bin/sh
if [ "$1" = -c ]; then echo {version}; exit; fi
for last; do :; done
echo "${{last##*/}}" >> {log}
"""


class Work:
    """An environment whose Python only writes down what pip was told to install."""

    def __init__(self, setup: ModuleType, log: Path) -> None:
        self.log = log
        setup.PYTHON.parent.mkdir(parents=True)
        setup.PYTHON.write_text(FAKE.format(version=setup.VERSION, log=log))
        setup.PYTHON.chmod(0o755)

    def taken(self) -> list[str]:
        """What was installed since this was last asked."""
        lines = self.log.read_text().split() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return lines


@pytest.fixture
def work(setup: ModuleType, tmp_path: Path) -> Work:
    return Work(setup, tmp_path / "installed.log")


def test_the_locked_packages_come_first_then_the_project(setup: ModuleType, work: Work) -> None:
    setup.make_ready(dev=False)
    assert work.taken() == ["requirements.lock", setup.ROOT.name]


def test_when_nothing_has_changed_nothing_is_done(setup: ModuleType, work: Work) -> None:
    setup.make_ready(dev=True)
    work.taken()
    setup.make_ready(dev=True)
    setup.make_ready(dev=False)
    assert work.taken() == []


def test_the_checks_need_more_than_running_does(setup: ModuleType, work: Work) -> None:
    setup.make_ready(dev=False)
    work.taken()
    setup.make_ready(dev=True)
    *locked, torch, project = work.taken()
    assert locked == ["requirements.lock", "requirements-dev.lock", "requirements-torch.lock"]
    assert torch.startswith("torch==")
    assert project == setup.ROOT.name


def test_a_changed_lock_of_the_checks_is_installed_anew_for_checks_alone(
    setup: ModuleType, work: Work
) -> None:
    setup.make_ready(dev=True)
    work.taken()
    with (setup.ROOT / "requirements-torch.lock").open("a") as file:
        file.write("# changed\n")
    setup.make_ready(dev=False)
    assert work.taken() == []
    setup.make_ready(dev=True)
    assert "requirements-torch.lock" in work.taken()


@pytest.mark.parametrize("changed", ["requirements.lock", "pyproject.toml"])
def test_a_changed_lock_or_project_file_is_installed_anew(
    setup: ModuleType, work: Work, changed: str
) -> None:
    setup.make_ready(dev=False)
    work.taken()
    with (setup.ROOT / changed).open("a") as file:
        file.write("# changed\n")
    setup.make_ready(dev=False)
    assert "requirements.lock" in work.taken()


def test_a_set_up_that_failed_half_way_is_begun_again(
    setup: ModuleType, work: Work, capsys: pytest.CaptureFixture[str]
) -> None:
    working = setup.PYTHON.read_text()
    broken = working.replace(
        "for last", 'case "$*" in *--editable*) echo no room >&2; exit 1;; esac; for last'
    )
    setup.PYTHON.write_text(broken)
    with pytest.raises(SystemExit, match="could not be installed"):
        setup.make_ready(dev=False)
    assert "no room" in capsys.readouterr().err, "pip's own words are shown"
    work.taken()

    setup.PYTHON.write_text(working)
    setup.make_ready(dev=False)
    assert work.taken() == ["requirements.lock", setup.ROOT.name]


def test_an_environment_of_another_python_is_made_anew(setup: ModuleType, work: Work) -> None:
    setup.PYTHON.write_text(FAKE.format(version="3.10.1", log=work.log))
    setup.make_venv()
    asked = [str(setup.PYTHON), "-c", "import sys, pip; print(sys.version.split()[0])"]
    assert subprocess.check_output(asked, text=True).strip() == setup.VERSION
