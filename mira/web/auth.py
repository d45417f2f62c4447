"""Who is asking: keys, browser sessions, and the token of this machine's administrator."""

from __future__ import annotations

import hmac
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from starlette.requests import cookie_parser

from mira.errors import Forbidden, Unauthorized
from mira.store import keys
from mira.store.keys import Holder, Scope
from mira.web.origin import made_here
from mira.web.services import WebServices

COOKIE = "mira_session"
_RANK: Mapping[Scope, int] = {"read": 0, "chat": 1, "admin": 2}
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
#: Verified credentials remembered, and revocations remembered against races with a look-up.
_MOST = 4096


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is asking and what they may do. `proof` is the hash of what they showed."""

    user_id: UUID
    scope: Scope
    key_id: UUID | None
    source: Literal["key", "session", "local"]
    proof: bytes

    def may(self, needed: Scope) -> bool:
        """read < chat < admin: each may what the ones before it may."""
        return _RANK[self.scope] >= _RANK[needed]

    def need(self, needed: Scope) -> None:
        """Raises Forbidden."""
        if not self.may(needed):
            raise Forbidden(f"This needs a key with the scope {needed!r}; yours is {self.scope!r}.")

    @property
    def bucket(self) -> str:
        """Whose rate limit this counts against."""
        return f"key:{self.key_id}" if self.key_id else f"user:{self.user_id}"


class Authenticator:
    """Verifies credentials, remembers the verified ones for seconds, forgets revoked ones at once.

    "At once" is within this process; another node learns of it when its memory ends.
    """

    def __init__(self, services: WebServices) -> None:
        self._services = services
        self._known: OrderedDict[bytes, tuple[Principal, float]] = OrderedDict()
        self._ended: OrderedDict[bytes, None] = OrderedDict()
        self._watchers: dict[bytes, set[Callable[[], None]]] = {}
        token = services.admin_token
        self._local = keys.digest(token) if token else b""

    async def of_request(self, headers: Mapping[str, str], method: str) -> Principal:
        """Who sends an HTTP request. A key in the header comes before a cookie.

        Raises Unauthorized; Forbidden if a page of another origin makes a change by cookie.
        """
        principal = await self.of_headers(headers)
        if (
            principal.source == "session"
            and method not in _SAFE
            and not made_here(headers, self._services.settings.allowed_origins)
        ):
            raise Forbidden("A page of another origin may not do this.")
        return principal

    async def of_headers(self, headers: Mapping[str, str]) -> Principal:
        """Whom the Authorization header or the session cookie stands for. Raises Unauthorized."""
        authorization = headers.get("authorization")
        if authorization is not None:
            kind, _, value = authorization.partition(" ")
            if kind.lower() != "bearer" or not value.strip():
                raise Unauthorized("Send the key as: Authorization: Bearer mira_…")
            return await self.of_key(value.strip())
        token = session_token(headers)
        if token is None:
            raise Unauthorized("No key: send Authorization: Bearer mira_…, or sign in.")
        return await self.of_session(token)

    async def of_key(self, key: str) -> Principal:
        """Whom an API key or the local admin token stands for. Raises Unauthorized."""
        proof = keys.digest(key)
        if self._local and hmac.compare_digest(proof, self._local):
            return Principal(self._services.owner, "admin", None, "local", proof)
        if not key.startswith(keys.PREFIX):
            raise Unauthorized("This is not a key of MIRA; they begin with mira_.")
        if (known := self._remembered(proof)) is not None:
            return known
        async with self._services.database.engine() as tx:
            holder = await keys.authenticate(tx, key, self._services.clock.now())
        return self._remember(proof, holder, "key")

    async def of_session(self, token: str) -> Principal:
        """Whom a browser session stands for. Raises Unauthorized."""
        proof = keys.digest(token)
        if (known := self._remembered(proof)) is not None:
            return known
        async with self._services.database.engine() as tx:
            holder = await keys.session(tx, token, self._services.clock.now())
        return self._remember(proof, holder, "session")

    def watch(self, principal: Principal, ended: Callable[[], None]) -> Callable[[], None]:
        """Have `ended` called when the credential ends; return what stops that.

        Raises Unauthorized if it has ended meanwhile.
        """
        names = _names(principal.proof, principal.key_id)
        self._refuse_ended(names)
        for name in names:
            self._watchers.setdefault(name, set()).add(ended)

        def forget() -> None:
            for name in names:
                with suppress(KeyError):
                    self._watchers[name].discard(ended)
                    if not self._watchers[name]:
                        del self._watchers[name]

        return forget

    def key_revoked(self, key_id: UUID) -> None:
        """A key was revoked: it, and the sessions that began with it, end now."""
        for proof in [p for p, (known, _) in self._known.items() if known.key_id == key_id]:
            del self._known[proof]
        self._end(key_id.bytes)

    def session_closed(self, token: str) -> None:
        """A session was closed: it ends now."""
        proof = keys.digest(token)
        self._known.pop(proof, None)
        self._end(proof)

    def _end(self, name: bytes) -> None:
        self._ended[name] = None
        if len(self._ended) > _MOST:
            self._ended.popitem(last=False)
        for ended in tuple(self._watchers.get(name, ())):
            ended()

    def _refuse_ended(self, names: tuple[bytes, ...]) -> None:
        if any(name in self._ended for name in names):
            raise Unauthorized("This key was revoked, or the session closed.")

    def _remembered(self, proof: bytes) -> Principal | None:
        entry = self._known.get(proof)
        if entry is None:
            return None
        if entry[1] <= self._services.clock.monotonic():
            del self._known[proof]
            return None
        return entry[0]

    def _remember(
        self, proof: bytes, holder: Holder, source: Literal["key", "session"]
    ) -> Principal:
        # A revocation may have come between the look-up and here.
        self._refuse_ended(_names(proof, holder.key_id))
        principal = Principal(holder.user_id, holder.scope, holder.key_id, source, proof)
        memory = self._services.limits.key_memory
        if holder.expires_at is not None:
            memory = min(memory, _seconds(holder.expires_at, self._services.clock.now()))
        self._known[proof] = (principal, self._services.clock.monotonic() + memory)
        if len(self._known) > _MOST:
            self._known.popitem(last=False)
        return principal


def session_token(headers: Mapping[str, str]) -> str | None:
    """The session in the request's cookie, if any."""
    return cookie_parser(headers.get("cookie", "")).get(COOKIE) or None


def _names(proof: bytes, key_id: UUID | None) -> tuple[bytes, ...]:
    return (proof,) if key_id is None else (proof, key_id.bytes)


def _seconds(later: datetime, now: datetime) -> float:
    return max(0.0, (later - now).total_seconds())
