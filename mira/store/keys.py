"""Who may come in: API keys, one-time sign-in links, browser sessions. Only hashes are kept.

Everything here works in a transaction of the engine (`Database.engine`). A secret leaves these
functions once, when it is made; 256 random bits need no slow hash, SHA-256 keeps them.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime, timedelta
from typing import Literal, cast
from uuid import UUID

import asyncpg
import msgspec

from mira.errors import Conflict, NotFound, Unauthorized, ValidationFailed
from mira.ids import Ids
from mira.store.database import Tx

Scope = Literal["read", "chat", "admin"]
SCOPES: tuple[Scope, ...] = ("read", "chat", "admin")

PREFIX = "mira_"
LINK_LIFETIME = timedelta(minutes=10)
SESSION_LIFETIME = timedelta(days=30)
#: Live keys that one user may have.
MOST_KEYS = 200
#: `last_used_at` is written at most this often, so that reading costs no write.
_USE_RESOLUTION = timedelta(minutes=5)


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A key as it may be shown: never the key itself."""

    id: UUID
    name: str
    scope: Scope
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None


class NewKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key that was just made: the only time that it is shown."""

    id: UUID
    key: str
    name: str
    scope: Scope


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a secret stands for. `key_id` is None for a session that began with a link."""

    user_id: UUID
    scope: Scope
    key_id: UUID | None
    #: When it ends by itself; None for a key.
    expires_at: datetime | None = None


def digest(secret: str) -> bytes:
    """What is stored of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


async def create(
    tx: Tx, ids: Ids, user_id: UUID, *, name: str, scope: Scope, now: datetime
) -> NewKey:
    """Make a key. Raises Conflict if a live key has this name, or too many are alive."""
    name = name.strip()
    if not 1 <= len(name) <= 100 or not name.isprintable():
        raise ValidationFailed(
            "A key's name has 1 to 100 printable characters.", (("name", "1 to 100 characters"),)
        )
    if scope not in SCOPES:
        raise ValidationFailed("There is no such scope.", (("scope", "read, chat or admin"),))
    alive: int = await tx.value(
        "select count(*) from api_keys where user_id = $1 and revoked_at is null", user_id
    )
    if alive >= MOST_KEYS:
        raise Conflict(f"There are {alive} keys already; revoke one first.")
    new = NewKey(id=ids.new(), key=PREFIX + ids.token(256), name=name, scope=scope)
    try:
        await tx.execute(
            "insert into api_keys (id, user_id, name, scope, hash, created_at) "
            "values ($1, $2, $3, $4, $5, $6)",
            new.id, user_id, name, scope, digest(new.key), now,
        )  # fmt: skip
    except asyncpg.UniqueViolationError:
        raise Conflict(f"There is a key named {name!r} already.") from None
    except asyncpg.ForeignKeyViolationError:
        raise NotFound("There is no such user.") from None
    return new


async def listed(tx: Tx, user_id: UUID) -> list[KeyRecord]:
    """The user's keys, newest first, revoked ones included."""
    rows = await tx.fetch(
        "select id, name, scope, created_at, last_used_at, revoked_at from api_keys "
        "where user_id = $1 order by created_at desc, id desc",
        user_id,
    )
    return [KeyRecord(**dict(row)) for row in rows]


async def count_live(tx: Tx) -> int:
    """How many keys of any user are alive."""
    return cast(int, await tx.value("select count(*) from api_keys where revoked_at is null"))


async def revoke(tx: Tx, user_id: UUID, key_id: UUID, now: datetime) -> None:
    """End a key and the sessions that began with it. Raises NotFound; twice is once."""
    found = await tx.execute(
        "update api_keys set revoked_at = coalesce(revoked_at, $3) where id = $2 and user_id = $1",
        user_id, key_id, now,
    )  # fmt: skip
    if not found:
        raise NotFound("There is no such key.")
    await tx.execute("delete from sessions where key_id = $1", key_id)


async def authenticate(tx: Tx, key: str, now: datetime) -> Holder:
    """Whom a key stands for. Raises Unauthorized if it is unknown or revoked.

    The row is found by the hash, so that time tells nothing of any stored key; the hashes are
    compared once more in constant time.
    """
    hashed = digest(key)
    row = await tx.row(
        "select id, user_id, scope, hash, last_used_at from api_keys "
        "where hash = $1 and revoked_at is null",
        hashed,
    )
    if row is None or not hmac.compare_digest(row["hash"], hashed):
        raise Unauthorized("This key is unknown or was revoked.")
    used = row["last_used_at"]
    if used is None or now - used >= _USE_RESOLUTION:
        await tx.execute(
            "update api_keys set last_used_at = greatest(last_used_at, $2) where id = $1",
            row["id"], now,
        )  # fmt: skip
    return Holder(user_id=row["user_id"], scope=row["scope"], key_id=row["id"])


async def create_link(tx: Tx, ids: Ids, user_id: UUID, now: datetime) -> str:
    """Make a sign-in token that works once within ten minutes; spent and old ones are swept."""
    await tx.execute("delete from signin_links where expires_at <= $1 or used_at is not null", now)
    token = ids.token(256)
    await tx.execute(
        "insert into signin_links (hash, user_id, expires_at) values ($1, $2, $3)",
        digest(token), user_id, now + LINK_LIFETIME,
    )  # fmt: skip
    return token


async def redeem_link(tx: Tx, token: str, now: datetime) -> UUID:
    """Use a sign-in token: of any number of racing callers exactly one gets the user.

    Raises Unauthorized if it is unknown, used or too old.
    """
    user_id: UUID | None = await tx.value(
        "update signin_links set used_at = $2 "
        "where hash = $1 and used_at is null and expires_at > $2 returning user_id",
        digest(token), now,
    )  # fmt: skip
    if user_id is None:
        raise Unauthorized("This sign-in link is unknown, was used, or is older than ten minutes.")
    return user_id


async def open_session(tx: Tx, ids: Ids, holder: Holder, now: datetime) -> tuple[str, datetime]:
    """Begin a browser session with the rights of `holder`; return its token and its end."""
    await tx.execute("delete from sessions where expires_at <= $1", now)
    token, expires_at = ids.token(256), now + SESSION_LIFETIME
    await tx.execute(
        "insert into sessions (hash, user_id, key_id, scope, created_at, expires_at) "
        "values ($1, $2, $3, $4, $5, $6)",
        digest(token), holder.user_id, holder.key_id, holder.scope, now, expires_at,
    )  # fmt: skip
    return token, expires_at


async def session(tx: Tx, token: str, now: datetime) -> Holder:
    """Whom a session stands for. Raises Unauthorized if it is unknown, over, or its key revoked."""
    row = await tx.row(
        "select s.user_id, s.scope, s.key_id, s.expires_at from sessions s "
        "left join api_keys k on k.id = s.key_id "
        "where s.hash = $1 and s.expires_at > $2 and k.revoked_at is null",
        digest(token), now,
    )  # fmt: skip
    if row is None:
        raise Unauthorized("This session is unknown or over; sign in again.")
    return Holder(**dict(row))


async def close_session(tx: Tx, token: str) -> None:
    """End a session; nothing if there is none."""
    await tx.execute("delete from sessions where hash = $1", digest(token))
