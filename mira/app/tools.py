"""The tools of the folder `tools/`, found at start."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from mira.telemetry import logger, where_it_failed
from mira.toolkit import Tool

log = logger("tools")

PACKAGE = "tools"


def find_tools() -> list[Tool]:
    """One of each tool class in a file `NAME_tool.py`. A file that fails is reported, and the
    rest are found all the same."""
    package = importlib.import_module(PACKAGE)
    found: list[Tool] = []
    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.endswith("_tool"):
            continue
        try:
            found += _made(importlib.import_module(f"{PACKAGE}.{module.name}"))
        except Exception as error:
            log.error("tool_not_loaded", tool=module.name, where=where_it_failed(error))
    return found


def _made(module: ModuleType) -> list[Tool]:
    return [
        value()
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Tool)
        and value.__module__ == module.__name__
    ]
