"""`mira bench` finds benchmarks by their entry points and leaves their arguments to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import mira


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An installed package with one benchmark."""
    (tmp_path / "some_bench.py").write_text(
        "def main(arguments):\n    print('got', arguments)\n    return 7\n"
    )
    installed = tmp_path / "some_bench-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: some-bench\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[mira.bench]\nexample = some_bench:main\n")
    return {"PYTHONPATH": str(tmp_path)}


def test_a_benchmark_gets_the_rest_of_the_arguments_and_decides_on_the_exit_code(
    environment: dict[str, str],
) -> None:
    done = mira(environment, "bench", "example", "--json", "x.json", "--help")
    assert (done.code, done.out) == (7, "got ['--json', 'x.json', '--help']\n")


def test_the_benchmarks_are_listed(environment: dict[str, str]) -> None:
    for arguments in ((), ("--help",)):
        done = mira(environment, "bench", *arguments)
        assert done.code == 0
        assert "example" in done.out


def test_an_unknown_benchmark_is_refused_with_those_there_are(environment: dict[str, str]) -> None:
    done = mira(environment, "bench", "nonsense")
    assert done.code == 2
    assert "example" in done.err
