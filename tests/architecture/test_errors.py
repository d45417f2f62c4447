"""The drawing of the error tree is the error tree."""

from __future__ import annotations

import inspect
import re

from mira import errors
from mira.errors import MiraError

#: A line of the drawing: the branches before a name, the name, and what is said of it.
LINE = re.compile(r"^    ((?:[│├└ ] )*)([A-Z]\w+)\s*(.*)$")


def drawn() -> dict[str, tuple[str | None, str]]:
    """Read the drawing: for each name, its parent and what stands beside it."""
    found: dict[str, tuple[str | None, str]] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if match := LINE.match(line):
            depth = len(match[1]) // 2
            path[depth:] = [match[2]]
            found[match[2]] = (path[depth - 1] if depth else None, match[3])
    return found


def classes() -> dict[str, type[MiraError]]:
    return {
        name: value
        for name, value in inspect.getmembers(errors, inspect.isclass)
        if value.__module__ == errors.__name__ and issubclass(value, MiraError)
    }


def test_every_error_stands_in_the_drawing_under_its_parent() -> None:
    real = {
        name: None if kind is MiraError else kind.__bases__[0].__name__
        for name, kind in classes().items()
    }
    assert real == {name: parent for name, (parent, _) in drawn().items()}


def test_the_code_and_status_drawn_beside_an_error_are_its_own() -> None:
    for name, (_, words) in drawn().items():
        if match := re.match(r"([a-z_]+) (\d{3})\b", words):
            kind = classes()[name]
            assert (kind.code, str(kind.status)) == match.groups(), name


def test_every_error_can_be_raised_with_nothing_said_and_still_names_itself() -> None:
    for name, kind in classes().items():
        if kind is not errors.StartupRefused:
            assert kind().detail == name
