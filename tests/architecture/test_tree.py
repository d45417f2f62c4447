"""The form of the source tree: short files, each with a purpose, speaking of the project alone."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.architecture.tree import files, read, sources

#: Files longer than the limit, each with the reason why it is not divided.
LONG: dict[str, str] = {}
LIMIT = 400
#: Tests are read one by one, not in one sitting; a file of them may hold more.
TESTS_LIMIT = 600

#: What belongs to a place where the project was worked on, not to the project. The brackets keep
#: each pattern from finding itself.
FOREIGN = re.compile(
    "|".join(
        [
            r"[p]ypi\.org",
            r"[p]ythonhosted\.org",
            r"[r]egistry\.npmjs",
            r"[d]eb\.debian\.org",
            r"\b[p]yenv\b",
            r"(?<![\w.])/(?:work|root|opt)/[\w.]",
            r"/home/[\w]",
            r"\.\./[s]hared\b",
            r"\b(?:findings|faults)[.]md\b",
            r"\bdesign/\w",
            r"\b[Ii]ssue #?\d",
        ]
    )
)
TEXT = {
    *(".py", ".js", ".css", ".html", ".sql", ".j2", ".svg"),
    *(".md", ".toml", ".lock", ".json", ".txt", ""),
}


def ours() -> list[Path]:
    """The project's own text files; what others wrote stands in folders named `vendor`."""
    return [path for path in files() if path.suffix in TEXT and "vendor" not in path.parts]


def test_no_source_file_is_longer_than_can_be_read_in_one_sitting() -> None:
    lengths = {
        str(path): read(path).count("\n")
        for path in ours()
        if path.suffix in {".py", ".js", ".css", ".sql"}
    }
    long = {
        path: lines
        for path, lines in lengths.items()
        if lines > (TESTS_LIMIT if path.startswith("tests/") else LIMIT)
    }
    assert long.keys() <= LONG.keys(), f"divide these, or justify them in LONG: {long}"
    assert long.keys() >= LONG.keys(), "no longer long: strike it from LONG"


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        str(path)
        for path in sources("mira", "bench", "tools", "scripts")
        if (source := read(path)) and not ast.get_docstring(ast.parse(source))
    ]
    assert not silent, "begin each with a docstring"


def test_the_project_speaks_of_itself_alone() -> None:
    found = [
        f"{path}:{number}: {match.group()}"
        for path in ours()
        for number, line in enumerate(read(path).splitlines(), 1)
        if (match := FOREIGN.search(line))
    ]
    assert not found
