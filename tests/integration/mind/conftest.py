"""What tests of reading and recalling share.

One database serves all tests of a module: each has users of its own, and no other's rows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from mira.ids import SystemIds
from mira.store.database import Database
from mira.store.users import User, ensure_user
from tests.conftest import EPOCH, Place, clone_of
from tests.services import TestServices
from tests.support.memory import Remembering, real_encoders


@pytest.fixture(scope="module")
def place(services: TestServices, template: str) -> Place:
    """A clone of the template for the module; it goes with the servers."""
    return clone_of(services, template)


async def _anybody(database: Database) -> User:
    user_id = SystemIds().new()
    return await ensure_user(database, user_id, f"u{user_id.hex[-12:]}", "Europe/Vienna", EPOCH)


@pytest.fixture
async def user(database: Database) -> User:
    return await _anybody(database)


@pytest.fixture
async def other(database: Database) -> User:
    return await _anybody(database)


@pytest.fixture
async def here(database: Database) -> AsyncIterator[Remembering]:
    """Memories over the real model."""
    async with real_encoders() as encoders:
        yield Remembering(database, encoders)
