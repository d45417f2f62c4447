"""`mira key`: API keys."""

from __future__ import annotations

from cyclopts import App

from mira.cli.asking import ask
from mira.cli.house import open_house
from mira.cli.output import Json, local_time, note, print_json, print_table
from mira.errors import NotFound, ValidationFailed
from mira.settings import Settings
from mira.store.keys import Scope
from mira.web.models import CreatedKey, Key, KeyList

app = App(name="key", help="Make, list and revoke API keys.", help_format="plaintext")


@app.command
def create(*, name: str, scope: Scope = "chat", json: Json = False) -> int:
    """Make a key. It is shown this once and stored as a hash.

    Parameters
    ----------
    name
        What the key is called in lists. Live keys have different names.
    scope
        What it may do: read; chat, which includes read; or admin, which includes both.
    """

    async def make(settings: Settings) -> CreatedKey:
        async with open_house(settings) as house:
            return await house.create_key(name, scope)

    made = ask(make)
    if json:
        print_json(made)
        return 0
    print(made.key)
    note(f"Key {made.name!r}, scope {made.scope}, id {made.id}. It is not shown again.")
    return 0


@app.command(name="list")
def list_keys(*, every: bool = False, json: Json = False) -> int:
    """List the keys; never the keys themselves.

    Parameters
    ----------
    every
        Revoked ones too.
    """

    async def listed(settings: Settings) -> tuple[Key, ...]:
        async with open_house(settings) as house:
            return await house.keys()

    keys = tuple(key for key in ask(listed) if every or key.revoked_at is None)
    if json:
        print_json(KeyList(keys=keys))
        return 0
    print_table(
        ("NAME", "SCOPE", "CREATED", "LAST USED", "REVOKED", "ID"),
        (
            (
                key.name,
                key.scope,
                local_time(key.created_at),
                local_time(key.last_used_at),
                local_time(key.revoked_at),
                str(key.id),
            )
            for key in keys
        ),
    )
    return 0


@app.command
def revoke(key: str) -> int:
    """Revoke a key: it, its sessions and its connections end at once.

    Parameters
    ----------
    key
        Its id or its name.
    """
    if key.startswith("mira_"):
        raise ValidationFailed("Give the key's id or name, not the key itself.")

    async def end(settings: Settings) -> Key:
        async with open_house(settings) as house:
            found = _named(key, await house.keys())
            await house.revoke_key(found.id)
            return found

    ended = ask(end)
    print(f"Revoked {ended.name} ({ended.id}).")
    return 0


def _named(wanted: str, keys: tuple[Key, ...]) -> Key:
    by_id = [key for key in keys if str(key.id) == wanted.lower()]
    by_name = [key for key in keys if key.name == wanted and key.revoked_at is None]
    for key in (*by_id, *by_name):
        return key
    raise NotFound(f"There is no key with the id or name {wanted!r}. See: mira key list")
