"""The loops that the engine runs on. Order is tested on each, timing on trio's mock clock."""

from __future__ import annotations

from typing import Any

import pytest
from trio.testing import MockClock


def _backend(name: str) -> tuple[str, dict[str, Any]]:
    if name == "trio":
        # A fresh clock for every test: a shared one carries its time along.
        return "trio", {"clock": MockClock(autojump_threshold=0)}
    return "asyncio", {"use_uvloop": name == "uvloop"}


@pytest.fixture(params=["asyncio", "uvloop", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return _backend(request.param)
