"""Real services for the whole session; a database of its own, cloned, for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

import asyncpg
import hypothesis
import pytest

from mira.clock import SystemClock
from mira.ids import SystemIds
from mira.memory.embedding import Embedder
from mira.memory.embedding.minilm import MiniLM
from mira.memory.pool import CpuPool
from mira.store.database import Database
from mira.store.migrate import migrate
from mira.store.users import User, ensure_user
from tests.services import TestServices, start_test_services
from tests.support import models
from tests.support.processes import (
    DoubleProcess,
    Person,
    Residents,
    ServerProcess,
    run_apart,
)

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


def place_of(services: TestServices, name: str) -> Place:
    """How each role reaches a database of the test services."""
    return Place(
        owner=dict(services.pg.dsn("postgres", name)),
        app=dict(services.pg.dsn("mira_app", name)),
        engine=dict(services.pg.dsn("mira_engine", name)),
    )


def url_of(connect: dict[str, Any]) -> str:
    """The same way to a database as a URL, as a setting has it."""
    host = quote(connect["host"], safe="")
    return f"postgresql://{connect['user']}@/{connect['database']}?host={host}"


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

    run_apart(make())
    return TEMPLATE


def clone_of(services: TestServices, template: str) -> Place:
    """A new database, cloned from a template that nobody is connected to."""
    name = f"t_{SystemIds().new().hex}"
    _as_superuser(services, f"create database {name} template {template} strategy file_copy")
    return place_of(services, name)


def _as_superuser(services: TestServices, sql: str) -> None:
    async def run() -> None:
        owner = await asyncpg.connect(**services.pg.dsn("postgres", "postgres"))
        try:
            await owner.execute(sql)
        finally:
            await owner.close()

    run_apart(run())


@pytest.fixture
def place(services: TestServices, template: str) -> Iterator[Place]:
    """A fresh clone of the template, dropped afterwards."""
    clone = clone_of(services, template)
    yield clone
    _as_superuser(services, f"drop database {clone.owner['database']} with (force)")


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


# The models that run in the process.


@pytest.fixture(scope="session")
def minilm() -> MiniLM:
    """The embedding model that ships with MIRA, loaded once."""
    return models.minilm()


@pytest.fixture
async def pool() -> AsyncIterator[CpuPool]:
    opened = CpuPool()
    try:
        yield opened
    finally:
        await opened.aclose()


@pytest.fixture
async def embedder(minilm: MiniLM, pool: CpuPool) -> AsyncIterator[Embedder]:
    """An embedder of the test's own, ready, on the real model."""
    opened = Embedder(lambda: minilm, pool, SystemClock())
    await opened.warm()
    try:
        yield opened
    finally:
        await opened.aclose()


# The whole server.


@pytest.fixture(scope="session")
def double() -> Iterator[DoubleProcess]:
    """The provider double; reset it before use."""
    started = DoubleProcess()
    yield started
    started.close()


@pytest.fixture
def fresh_server(
    services: TestServices, place: Place, double: DoubleProcess
) -> Iterator[ServerProcess]:
    """A server of the test's own, not started yet, to be killed and restarted at will."""
    double.reset()
    server = ServerProcess(url_of(place.owner), services.valkey.url, double)
    yield server
    server.close()


@dataclass
class Server:
    """The session's server as one user sees it."""

    process: ServerProcess
    person: Person
    residents: Residents
    place: Place

    @property
    def url(self) -> str:
        return self.process.url

    @property
    def ws_url(self) -> str:
        return "ws" + self.url.removeprefix("http") + "/v1/ws"

    @property
    def key(self) -> str:
        return self.person.key

    @property
    def read_key(self) -> str:
        return self.person.read_key

    @property
    def admin_key(self) -> str:
        return self.person.admin_key

    @property
    def double(self) -> DoubleProcess:
        return self.process.double

    @property
    def home(self) -> Path:
        return self.process.home

    def signin_link(self) -> str:
        """A one-time link for this user."""
        return f"{self.url}/signin/{self.residents.signin_token(self.person.id)}"

    def neighbour(self) -> Person:
        """Another user of the same server."""
        return self.residents.add(f"n{SystemIds().new().hex[-12:]}")

    def rows(self, sql: str, *values: object) -> list[dict[str, Any]]:
        """Look into the database as its owner."""
        return self.residents.rows(self.place.owner, sql, *values)


@pytest.fixture(scope="session")
def server_process(
    services: TestServices, template: str, double: DoubleProcess
) -> Iterator[tuple[ServerProcess, Place]]:
    """One server for all tests that do not kill it."""
    place = clone_of(services, template)
    process = ServerProcess(url_of(place.owner), services.valkey.url, double)
    process.extra["MIRA_TEST_EFFECTS"] = str(process.home.with_suffix(".effects"))
    process.start()
    yield process, place
    process.stop()
    process.close()
    Path(process.extra["MIRA_TEST_EFFECTS"]).unlink(missing_ok=True)


@pytest.fixture
def server(server_process: tuple[ServerProcess, Place]) -> Iterator[Server]:
    """The session's server, a user of the test's own, and a double that echoes."""
    process, place = server_process
    process.double.reset()
    residents = Residents(place.app, place.engine)
    person = residents.add(f"u{SystemIds().new().hex[-12:]}")
    yield Server(process, person, residents, place)
    # What its user leaves to be done must not use up what the next test has scripted.
    residents.rows(place.owner, "delete from outbox where user_id = $1 returning 1", person.id)
    process.double.until_idle()


def uid(n: int) -> UUID:
    """A readable id for tests."""
    return UUID(int=n)
