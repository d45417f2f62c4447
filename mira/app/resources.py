"""What everything else stands on: secrets, database, cache; opened in order, closed in reverse."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import anyio
from pydantic import SecretStr

from mira.clock import AlarmClock, Clock, SystemClock
from mira.errors import StartupRefused, ValidationFailed
from mira.ids import Ids, SystemIds
from mira.secrets import Secrets, open_secrets
from mira.services.home import Home
from mira.services.postgres import EmbeddedPostgres
from mira.services.valkey import EmbeddedValkey
from mira.settings import Settings
from mira.store.cache import Cache
from mira.store.canary import prove_isolation
from mira.store.database import Connect, Database
from mira.store.migrate import migrate
from mira.store.roles import as_role
from mira.store.users import User, ensure_user
from mira.telemetry import logger

log = logger("app")


@dataclass(frozen=True)
class Resources:
    """Open resources. `engine` is how the engine's role reaches the database."""

    settings: Settings
    clock: AlarmClock
    ids: Ids
    secrets: Secrets
    database: Database
    cache: Cache
    engine: Connect
    user: User
    embedded: tuple[EmbeddedPostgres | EmbeddedValkey, ...]


@asynccontextmanager
async def open_resources(
    settings: Settings, clock: AlarmClock | None = None, ids: Ids | None = None
) -> AsyncIterator[Resources]:
    """Start what is ours, connect to what is not, bring the schema up to date, prove isolation.

    Raises StartupRefused with a reason and a remedy, or Unavailable.
    """
    clock, ids = clock or SystemClock(), ids or SystemIds()
    async with AsyncExitStack() as stack:
        home = Home(settings.home)
        stack.callback(home.close)
        secrets = open_secrets(settings, clock)
        stack.push_async_callback(secrets.aclose)
        postgres = None if settings.database_url else EmbeddedPostgres(home, clock=clock)
        valkey = None if settings.valkey_url else EmbeddedValkey(home, clock=clock)
        embedded = tuple(s for s in (postgres, valkey) if s is not None)
        async with anyio.create_task_group() as group:
            for server in embedded:
                stack.push_async_callback(server.stop)
                group.start_soon(server.start)
        app, engine = await _ways(settings, secrets, postgres, clock, ids)
        database = await Database.open(app, engine, size=settings.database_pool)
        stack.push_async_callback(database.aclose)
        await prove_isolation(database)
        user = await _user(settings, database, clock, ids)
        cache = Cache(valkey.url if valkey else _reveal(settings.valkey_url), clock)
        stack.push_async_callback(cache.aclose)
        yield Resources(
            settings=settings,
            clock=clock,
            ids=ids,
            secrets=secrets,
            database=database,
            cache=cache,
            engine=engine,
            user=user,
            embedded=embedded,
        )


async def _user(settings: Settings, database: Database, clock: Clock, ids: Ids) -> User:
    try:
        return await ensure_user(database, ids.new(), settings.user, settings.timezone, clock.now())
    except ValidationFailed as error:
        raise StartupRefused(error.detail, "Correct or unset MIRA_USER or MIRA_TIMEZONE.") from None


async def _ways(
    settings: Settings,
    secrets: Secrets,
    postgres: EmbeddedPostgres | None,
    clock: AlarmClock,
    ids: Ids,
) -> tuple[Connect, Connect]:
    """How app and engine reach the database, which has the program's schema then."""
    if postgres is not None:
        owner: Connect = dict(postgres.dsn("postgres"))
        await migrate(owner, None, clock.now())
        return dict(postgres.dsn("mira_app")), dict(postgres.dsn("mira_engine"))
    url = _reveal(settings.database_url)
    assert url is not None
    given = {
        "mira_app": _reveal(settings.database_url_app),
        "mira_engine": _reveal(settings.database_url_engine),
    }
    passwords = KeptPasswords(secrets, ids, given=frozenset(r for r, u in given.items() if u))
    owner = {"dsn": url}
    await migrate(owner, passwords, clock.now())
    ways: list[Connect] = []
    for role, its_url in given.items():
        if its_url:
            ways.append({"dsn": its_url})
        else:
            ways.append(as_role(owner, role, await secrets.get(_password_name(role))))
    return ways[0], ways[1]


class KeptPasswords:
    """The passwords of the database roles, in the key store."""

    def __init__(self, secrets: Secrets, ids: Ids, given: frozenset[str] = frozenset()) -> None:
        self._secrets = secrets
        self._ids = ids
        self._given = given

    async def get(self, role: str) -> str | None:
        return await self._secrets.get(_password_name(role))

    def draw(self) -> str:
        return self._ids.token(256)

    async def keep(self, role: str, password: str) -> None:
        await self._secrets.set(_password_name(role), password)

    def is_given(self, role: str) -> bool:
        """Whether the role has a URL of its own and is nobody's business here."""
        return role in self._given


def _password_name(role: str) -> str:
    return f"postgres.{role}"


def _reveal(value: SecretStr | None) -> str | None:
    return value.get_secret_value() if value else None


def refuse_if_public(settings: Settings, keys: int) -> None:
    """Raise StartupRefused for a public address while nobody has a key."""
    if settings.host in ("127.0.0.1", "localhost", "::1") or keys:
        return
    raise StartupRefused(
        f"MIRA would be reachable on {settings.host} and no API key exists yet.",
        "Start it once on 127.0.0.1, or run: mira key create --name NAME --scope admin",
    )
