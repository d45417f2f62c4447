"""`mira secret`: the key store. A value is asked for or read from a pipe, never an argument."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Protocol
from urllib.parse import quote

from cyclopts import App, Parameter

from mira.cli.asking import ask, quieten
from mira.cli.http import Http
from mira.cli.output import Json, print_json
from mira.cli.place import find
from mira.errors import NotFound, ValidationFailed
from mira.secrets.base import check_name, check_value
from mira.settings import Settings
from mira.web.models import SecretList, SecretValue

app = App(
    name="secret",
    help="Keep, list and destroy secrets, such as anthropic_api_key.",
    help_format="plaintext",
)


class Store(Protocol):
    """What the commands need of a key store; see mira.secrets.base.Secrets."""

    async def names(self) -> tuple[str, ...]: ...

    async def set(self, name: str, value: str) -> None: ...

    async def delete(self, name: str) -> bool: ...


@app.command(name="set")
def set_secret(
    name: str,
    *rest: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
) -> int:
    """Keep a secret, replacing an earlier one of this name.

    The value is asked for without showing it, or read from standard input if that is no
    terminal; one line break at its end is not part of it.

    Parameters
    ----------
    name
        Such as anthropic_api_key or openai_api_key.
    """
    if rest:
        raise ValidationFailed(
            "A secret's value is never an argument, where other programs and the shell's history "
            f"see it. Run: mira secret set {check_name(name)}"
        )
    check_name(name)
    value = check_value(_value(name))

    async def keep(settings: Settings) -> None:
        async with _store(settings) as store:
            await store.set(name, value)

    ask(keep)
    print(f"Kept {name}.")
    return 0


@app.command(name="list")
def list_secrets(*, json: Json = False) -> int:
    """List the names of the secrets. No command shows a value."""

    async def names(settings: Settings) -> tuple[str, ...]:
        async with _store(settings) as store:
            return await store.names()

    found = ask(names)
    if json:
        print_json(SecretList(secrets=found))
    else:
        for name in found:
            print(name)
    return 0


@app.command
def delete(name: str) -> int:
    """Destroy a secret."""
    check_name(name)

    async def destroy(settings: Settings) -> bool:
        async with _store(settings) as store:
            return await store.delete(name)

    if not ask(destroy):
        raise NotFound(f"There is no secret named {name}. See: mira secret list")
    print(f"Destroyed {name}.")
    return 0


def _value(name: str) -> str:
    if sys.stdin.isatty():
        from getpass import getpass

        try:
            return getpass(f"Value of {name} (not shown): ")
        except EOFError:
            raise ValidationFailed("No value was given; nothing was changed.") from None
    raw = sys.stdin.buffer.read()
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        # The error holds the whole value; it must not travel on as a cause.
        raise ValidationFailed("The value on standard input is not UTF-8.") from None
    return text.removesuffix("\n").removesuffix("\r")


@asynccontextmanager
async def _store(settings: Settings) -> AsyncIterator[Store]:
    """The key store through the running server, which may keep what it read; else directly."""
    server = find(settings)
    if server is not None:
        async with Http(server) as http:
            yield ServedStore(http)
        return
    quieten(settings)
    # Needs no database and no lock: the store is made for several processes.
    from mira.clock import SystemClock
    from mira.secrets import open_secrets

    secrets = open_secrets(settings, SystemClock())
    try:
        yield secrets
    finally:
        await secrets.aclose()


class ServedStore:
    """The key store behind a running server."""

    def __init__(self, http: Http) -> None:
        self._http = http

    async def names(self) -> tuple[str, ...]:
        return (await self._http.get("/v1/secrets", SecretList)).secrets

    async def set(self, name: str, value: str) -> None:
        await self._http.put(f"/v1/secrets/{quote(name, safe='')}", SecretValue(value=value))

    async def delete(self, name: str) -> bool:
        try:
            await self._http.delete(f"/v1/secrets/{quote(name, safe='')}")
        except NotFound:
            return False
        return True
