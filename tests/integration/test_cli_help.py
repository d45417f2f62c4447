"""What `mira` says of itself, and that it does so at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

import mira as package
from mira.cli.main import COMMANDS, run
from tests.support.processes import ROOT

#: What takes long to import; none of it is needed to print a text.
HEAVY = ("asyncio", "cyclopts", "pydantic", "rich", "httpx2", "structlog", "mira.settings")


@pytest.mark.parametrize(
    "arguments", [(), ("--help",), ("--version",), ("version",), ("nonsense",)]
)
def test_the_overview_and_the_version_import_nothing_that_takes_long(
    arguments: tuple[str, ...],
) -> None:
    script = (
        "import sys; sys.argv[0] = 'mira'\n"
        "from mira.__main__ import main\n"
        "try: main()\n"
        f"finally: print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]", done


def test_every_command_is_in_the_overview(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    for command in COMMANDS:
        assert f"  {command.name} " in shown
        assert command.summary in shown


@pytest.mark.parametrize("name", [c.name for c in COMMANDS if c.name not in ("bench", "version")])
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--help"]) == 0
    assert f"Usage: mira {name}" in capsys.readouterr().out


def test_the_version_is_the_package_s(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["version"]) == 0
    assert capsys.readouterr().out == f"mira {package.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["chatt"], "Did you mean chat?"),
        (["qqq"], "There is no command 'qqq'."),
        (["key", "creat"], 'Did you mean "create"?'),
        (["key", "create"], "--name requires an argument"),
        (["key", "create", "--name", "a", "--scope", "all"], '"all"'),
        (["serve", "--port", "70000"], "--port"),
        (["dead-letters", "show", "0"], "0"),
    ],
)
def test_wrong_usage_is_one_sentence_with_the_way_to_the_help(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert "--help" in told.err
    assert told.out == ""


def test_a_reader_that_has_enough_is_no_error() -> None:
    command = f"{sys.executable} -m mira --help | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, capture_output=True, timeout=60, check=False
    )
    assert done.stderr == b""


def test_a_terminal_without_unicode_gets_question_marks() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mira", "--help"],
        cwd=ROOT, env={"PYTHONIOENCODING": "ascii"}, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert b"Usage: mira COMMAND ?" in done.stdout
