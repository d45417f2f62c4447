"""What the administrator's commands ask for, answered by the running server or without one.

`open_house` speaks HTTP where a server runs. Where none does it opens database and key store
itself and gives the same answers; the home's lock keeps both apart.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol
from uuid import UUID

from mira.cli.asking import quieten
from mira.cli.http import Http
from mira.cli.output import note
from mira.cli.place import find
from mira.settings import Settings
from mira.store.keys import Scope
from mira.web.models import (
    CreatedKey,
    Key,
    KeyList,
    KeyRequest,
    Letter,
    LetterPage,
    Status,
)

#: The largest page that the server gives.
_PAGE = 200


class House(Protocol):
    """Keys of the house's owner, dead letters and status. Raises what the HTTP surface would."""

    async def keys(self) -> tuple[Key, ...]:
        """All keys, newest first, revoked ones included."""
        ...

    async def create_key(self, name: str, scope: Scope) -> CreatedKey: ...

    async def revoke_key(self, key_id: UUID) -> None: ...

    async def letters(self, most: int) -> tuple[Letter, ...]:
        """At most `most` dead letters, newest first."""
        ...

    async def replay(self, letter_id: int) -> Letter: ...

    async def status(self) -> Status: ...


@asynccontextmanager
async def open_house(settings: Settings) -> AsyncIterator[House]:
    """The house by the way that is open. Raises StartupRefused or Unavailable if none is."""
    server = find(settings)
    if server is not None:
        async with Http(server) as http:
            yield Served(http)
        return
    quieten(settings)
    note("No server is running; starting the database for this command…")
    from mira.cli.house_local import open_local

    async with open_local(settings) as house:
        yield house


class Served:
    """The house behind a running server."""

    def __init__(self, http: Http) -> None:
        self._http = http

    async def keys(self) -> tuple[Key, ...]:
        return (await self._http.get("/v1/keys", KeyList)).keys

    async def create_key(self, name: str, scope: Scope) -> CreatedKey:
        return await self._http.post("/v1/keys", CreatedKey, KeyRequest(name=name, scope=scope))

    async def revoke_key(self, key_id: UUID) -> None:
        await self._http.delete(f"/v1/keys/{key_id}")

    async def letters(self, most: int) -> tuple[Letter, ...]:
        found: list[Letter] = []
        query: dict[str, str | int] = {}
        while len(found) < most:
            limit = min(_PAGE, most - len(found))
            page = await self._http.get("/v1/dead-letters", LetterPage, limit=limit, **query)
            found.extend(page.dead_letters)
            if page.next_cursor is None:
                break
            query["cursor"] = page.next_cursor
        return tuple(found)

    async def replay(self, letter_id: int) -> Letter:
        return await self._http.post(f"/v1/dead-letters/{letter_id}/replay", Letter)

    async def status(self) -> Status:
        return await self._http.get("/v1/status", Status)
