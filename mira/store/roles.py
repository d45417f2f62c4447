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

#: Roles are the whole server's: this sees sessions in every database of it.
_IN_USE = "select exists (select from pg_stat_activity where usename = $1)"


class Passwords(Protocol):
    """Where the roles' passwords are kept, and drawn."""

    def is_given(self, role: str) -> bool:
        """Whether the role has a URL of its own: then it must exist, and is left as it is."""
        ...

    async def get(self, role: str) -> str | None: ...

    def draw(self) -> str:
        """A new password."""
        ...

    async def keep(self, role: str, password: str) -> None: ...


async def ensure_roles(
    connection: asyncpg.Connection[asyncpg.Record], passwords: Passwords | None
) -> None:
    """Make what is missing, and set a password that is not known here.

    Raises StartupRefused with the SQL to run if that is not allowed, or if somebody works with
    the role: it may belong to another server, which a new password would lock out.
    """
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
        if role in have and await connection.fetchval(_IN_USE, role):
            raise StartupRefused(
                f"The database role {role} is in use, and its password is not known here.",
                "If another MIRA works with this database, stop it, or use its MIRA_HOME. If it "
                "works with another database of the same server, set "
                f"MIRA_DATABASE_URL_{_suffix(role)} to a URL of this database with the role's "
                "password.",
            )
        verb = "alter" if role in have else "create"
        drawn = passwords.draw() if passwords and password is None else None
        password = password or drawn
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
                f"password '<password>'; and set MIRA_DATABASE_URL_{_suffix(role)} to a URL with "
                "it.",
            ) from None
        # Kept only now: a password that was kept but not set would never be set again.
        if passwords and drawn is not None:
            await passwords.keep(role, drawn)


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


def _suffix(role: str) -> str:
    return role.removeprefix("mira_").upper()


def _quoted(text: str) -> str:
    return text.replace("'", "''")
