"""What the documents say of the program is so."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import mira
from mira.settings import Settings
from tests.architecture.tree import ROOT, files, read

ROW = re.compile(r"^\| *(\d+) *\|([^|]+)\|(.+)\|$")
SETTING = re.compile(r"^\| `([A-Z_]+)`(?:, `([A-Z_]+)`)? \| ([^|]+) \| ([^|]+) \|$")


@cache
def ids_of(path: str) -> frozenset[str]:
    """The ids of the tests of a file, without running or importing it."""
    found: set[str] = set()

    def visit(nodes: list[ast.stmt], prefix: str) -> None:
        for node in nodes:
            if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
                visit(node.body, f"{prefix}{node.name}::")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if node.name.startswith("test_"):
                    found.add(prefix + node.name)
            elif isinstance(node, ast.Assign):  # a hypothesis state machine's TestCase
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
                found.update(f"{prefix}{name}::runTest" for name in names if "Test" in name)

    visit(ast.parse(read(path)).body, "")
    return frozenset(found)


def test_every_feature_that_is_claimed_is_shown_by_tests_that_exist() -> None:
    rows = [found for line in read("docs/features.md").splitlines() if (found := ROW.match(line))]
    assert rows, "docs/features.md has no rows"
    numbers = [int(row[1]) for row in rows]
    assert numbers == sorted(set(numbers)), "one row a feature, in order"
    for row in rows:
        ids = re.findall(r"`([^`]+)`", row[3])
        assert ids, f"feature {row[1]} names no test"
        for test in ids:
            path, _, name = test.partition("::")
            assert (ROOT / path).is_file(), f"feature {row[1]}: {path}"
            assert name in ids_of(path), f"feature {row[1]}: {test}"


def documented() -> dict[str, tuple[str | None, str]]:
    """The settings page: for each variable its other name and its default, as written."""
    lines = read("docs/settings.md").splitlines()
    return {row[1]: (row[2], row[3].strip()) for line in lines if (row := SETTING.match(line))}


def variables() -> dict[str, tuple[str | None, Any]]:
    """The settings of the program: for each variable its other name and its field."""
    found: dict[str, tuple[str | None, Any]] = {}
    for name, field in Settings.model_fields.items():
        if field.validation_alias is None:
            found[f"MIRA_{name.upper()}"] = (None, field)
        else:
            first, *others = [str(choice) for choice in field.validation_alias.choices]  # type: ignore[union-attr]
            found[first] = (others[0] if others else None, field)
    return found


def test_every_setting_is_documented_and_nothing_else() -> None:
    written = {name: other for name, (other, _) in documented().items()}
    assert written == {name: other for name, (other, _) in variables().items()}


def test_the_default_that_is_documented_is_the_default() -> None:
    for name, (_, field) in variables().items():
        written = documented()[name][1]
        if field.default_factory is not None:
            assert written.startswith("`"), f"{name}: say what the default is"
        elif field.default in (None, ()):
            assert written == "unset", name
        else:
            assert written == f"`{field.default}`", name


def test_the_changelog_has_an_entry_for_this_version() -> None:
    headings = re.findall(r"^## \[([^\]]+)\]", read("CHANGELOG.md"), re.MULTILINE)
    assert mira.__version__ in headings
    assert headings[0] in ("Unreleased", mira.__version__)


def test_every_link_from_one_document_to_another_leads_somewhere() -> None:
    for page in files():
        if page.suffix != ".md" or "vendor" in page.parts:
            continue
        for target in re.findall(r"\]\(([^)\s]+)\)", read(page)):
            where = target.partition("#")[0]
            if "://" not in target and where:
                assert (ROOT / page.parent / where).exists(), f"{page}: {target}"


def test_the_commands_of_the_readme_are_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^(\w+):", read("Makefile"), re.MULTILINE))
    named = set(re.findall(r"\bmake (\w+)\b", read("README.md") + read("CONTRIBUTING.md")))
    commands = {word for word in named if word in targets or word in {"run", "test", "check"}}
    assert {"run", "test"} <= commands <= targets


def test_the_license_is_the_one_that_is_declared() -> None:
    assert "Apache License" in read(Path("LICENSE"))
    assert 'license = "Apache-2.0"' in read("pyproject.toml")
