"""The two roles that the program works as, made by the owner where they are missing.

`mira_app` is bound by row-level security; `mira_engine` moves durable work. Over the embedded
server's socket no password is asked; on a real server each has a random one, kept in the key
store.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol
from urllib.parse import quote, urlsplit, urlunsplit

import asyncpg

from mira.errors import StartupRefused
from mira.store.database import Connect

ROLES = ("mira_app", "mira_engine")


class Passwords(Protocol):
    """Where the roles' passwords are kept, and drawn."""

    def is_given(self, role: str) -> bool:
        """Whether the role has a URL of its own: then it must exist, and is left as it is."""
        ...

    async def get(self, role: str) -> str | None: ...

    async def make(self, role: str) -> str:
        """Draw a new password, keep it, return it."""
        ...


async def ensure_roles(
    connection: asyncpg.Connection[asyncpg.Record], passwords: Passwords | None
) -> None:
    """Make what is missing. Raises StartupRefused with the SQL to run if that is not allowed."""
    have = {
        row["rolname"]
        for row in await connection.fetch(
            "select rolname from pg_roles where rolname = any($1)", list(ROLES)
        )
    }
    for role in ROLES:
        if role in have and passwords and passwords.is_given(role):
            continue
        password = await passwords.get(role) if passwords else None
        if role in have and (password or passwords is None):
            continue
        verb = "alter" if role in have else "create"
        if passwords and password is None:
            password = await passwords.make(role)
        sql = f"{verb} role {role} login nosuperuser nobypassrls nocreatedb nocreaterole"
        if verb == "alter":
            # Only the password: changing other attributes needs rights that an owner may lack.
            sql = f"alter role {role} login"
        if password:
            sql += f" password '{_quoted(password)}'"
        try:
            await connection.execute(sql)
        except asyncpg.InsufficientPrivilegeError:
            raise StartupRefused(
                f"The database role {role} is missing or its password is unknown, and the owner "
                "may not change that.",
                f"As a superuser run: {verb} role {role} login nosuperuser nobypassrls "
                f"password '<password>'; and set MIRA_DATABASE_URL_"
                f"{role.removeprefix('mira_').upper()} to a URL with it.",
            ) from None


def as_role(owner: Connect, role: str, password: str | None) -> dict[str, object]:
    """The owner's way to the server, as another role. `owner` has a `dsn`, or host and so on."""
    if "dsn" not in owner:
        return {**owner, "user": role}
    parts = urlsplit(str(owner["dsn"]))
    host = parts.netloc.rpartition("@")[2]
    login = quote(role) + (f":{quote(password, safe='')}" if password else "")
    return {**owner, "dsn": urlunsplit(parts._replace(netloc=f"{login}@{host}"))}


def redacted(connect: Mapping[str, object]) -> str:
    """Where the server is, without user and password; for messages."""
    if "dsn" not in connect:
        return f"{connect.get('host')}/{connect.get('database')}"
    parts = urlsplit(str(connect["dsn"]))
    return f"{parts.hostname or 'socket'}{f':{parts.port}' if parts.port else ''}{parts.path}"


def _quoted(text: str) -> str:
    return text.replace("'", "''")
