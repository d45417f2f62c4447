"""What tests of memory share; imported by their modules."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from mira.store.database import Database
from tests.support.memory import Remembering, real_encoders


@pytest.fixture
async def here(database: Database) -> AsyncIterator[Remembering]:
    """Memories over the real model."""
    async with real_encoders() as encoders:
        yield Remembering(database, encoders)
