"""Real services for the whole session; a database of its own, cloned, for each test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg
import hypothesis
import pytest

from mira.ids import SystemIds
from mira.store.database import Database
from mira.store.migrate import migrate
from mira.store.users import User, ensure_user
from tests.services import TestServices, start_test_services

# The same examples in every run, on fast machines and slow ones.
hypothesis.settings.register_profile("mira", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("mira")

TEMPLATE = "mira_template"
EPOCH = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


@pytest.fixture(params=["asyncio"])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """Tests of the whole run on asyncio; the engine's own tests choose for themselves."""
    return request.param


@pytest.fixture(scope="session")
def services() -> Iterator[TestServices]:
    """One real PostgreSQL and one real Valkey."""
    with start_test_services() as started:
        yield started


@dataclass(frozen=True)
class Place:
    """A database of one test: how each role reaches it."""

    owner: dict[str, Any]
    app: dict[str, Any]
    engine: dict[str, Any]


@pytest.fixture(scope="session")
def template(services: TestServices) -> str:
    """A migrated database that is cloned for each test."""

    async def make() -> None:
        owner = await asyncpg.connect(**services.pg.dsn("postgres", "postgres"))
        try:
            await owner.execute(f"create database {TEMPLATE}")
        finally:
            await owner.close()
        await migrate(dict(services.pg.dsn("postgres", TEMPLATE)), None, EPOCH)

    asyncio.run(make())
    return TEMPLATE


@pytest.fixture
def place(services: TestServices, template: str) -> Iterator[Place]:
    """A fresh clone of the template, dropped afterwards."""
    name = f"t_{SystemIds().new().hex}"

    async def run(sql: str) -> None:
        owner = await asyncpg.connect(**services.pg.dsn("postgres", "postgres"))
        try:
            await owner.execute(sql)
        finally:
            await owner.close()

    asyncio.run(run(f"create database {name} template {template} strategy file_copy"))
    yield Place(
        owner=dict(services.pg.dsn("postgres", name)),
        app=dict(services.pg.dsn("mira_app", name)),
        engine=dict(services.pg.dsn("mira_engine", name)),
    )
    asyncio.run(run(f"drop database {name} with (force)"))


@pytest.fixture
async def database(place: Place) -> AsyncIterator[Database]:
    """The two pools on the test's own database."""
    opened = await Database.open(place.app, place.engine, size=8)
    try:
        yield opened
    finally:
        await opened.aclose()


@pytest.fixture
async def user(database: Database) -> User:
    """A user with their conversation."""
    return await ensure_user(database, SystemIds().new(), "ada", "Europe/Vienna", EPOCH)


@pytest.fixture
async def other(database: Database) -> User:
    """Another user, who must never see anything of the first."""
    return await ensure_user(database, SystemIds().new(), "bob", "UTC", EPOCH)


def uid(n: int) -> UUID:
    """A readable id for tests."""
    return UUID(int=n)
