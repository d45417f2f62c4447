"""One logged-in session with Vault (or OpenBao): blocking, and clear about what went wrong.

The token of an AppRole login is renewed when two thirds of its life are over. When it cannot be
renewed any more, has been revoked or has run out, the session logs in again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import hvac
import requests
from hvac import exceptions as vault
from pydantic import SecretStr

from mira.clock import Clock
from mira.errors import SecretsUnavailable
from mira.secrets.vault_errors import said_clearly

T = TypeVar("T")

#: Seconds to connect, and to wait for the next byte of an answer.
TIMEOUT = (3.0, 8.0)


class VaultSession:
    """Makes calls with a valid token, one at a time. Safe to use from several threads."""

    def __init__(
        self,
        address: str,
        *,
        role_id: SecretStr,
        secret_id: SecretStr,
        ca: Path | None,
        clock: Clock,
        timeout: tuple[float, float] = TIMEOUT,
    ) -> None:
        self._address = address
        self._role_id = role_id
        self._secret_id = secret_id
        self._clock = clock
        self._patience = 2 * sum(timeout)
        self._lock = threading.Lock()
        # An empty token keeps hvac from looking for one in the environment and in files.
        self._client = hvac.Client(
            url=address, token="", verify=str(ca) if ca else True, timeout=timeout
        )
        self._client.session.trust_env = False
        self._lease = 0.0
        self._since = 0.0
        self._renewable = False

    def __repr__(self) -> str:
        return f"VaultSession({self._address!r})"

    def call(self, action: Callable[[hvac.Client], T]) -> T:
        """Return what `action` returns, called with a client that is logged in.

        `action` may run twice. Raises SecretsUnavailable. Blocks for a few time-outs at most.
        """
        with self._alone(), said_clearly(self._address):
            fresh = self._ensure_token()
            try:
                return action(self._client)
            except vault.Forbidden:
                # The token may have been revoked behind our back; if it is new, we are not allowed.
                if fresh:
                    raise
                self._log_in()
                return action(self._client)

    def refresh(self) -> float | None:
        """Log in or renew if it is time to; return in how many seconds to come again.

        None when the token never runs out.
        """
        with self._alone(), said_clearly(self._address):
            self._ensure_token()
            if self._lease == 0:
                return None
            return max(0.0, self._since + self._lease * 2 / 3 - self._clock.monotonic())

    def close(self) -> None:
        """Give the token back, as far as Vault can be reached, and close connections."""
        with self._alone():
            if self._client.token:
                try:
                    self._client.auth.token.revoke_self()
                except (vault.VaultError, requests.RequestException, OSError):
                    pass  # It runs out by itself.
                self._client.token = ""
            self._client.session.close()

    def _ensure_token(self) -> bool:
        """Have a token with life left in it. Returns whether it comes from a login just made."""
        age = self._clock.monotonic() - self._since
        if not self._client.token or 0 < self._lease <= age:
            self._log_in()
            return True
        if self._lease == 0 or age < self._lease * 2 / 3:
            return False
        return self._renew()

    def _renew(self) -> bool:
        """Renew the token, or log in where that gives too little. Returns whether it logged in."""
        before = self._lease
        if self._renewable:
            try:
                granted = self._client.auth.token.renew_self(increment=f"{int(before)}s")
                self._take(granted)
                # Close to its longest life the token gets shorter and shorter renewals.
                if self._lease >= before / 2:
                    return False
            except (vault.Forbidden, vault.InvalidRequest):
                pass
        self._log_in()
        return True

    def _log_in(self) -> None:
        self._client.token = ""
        try:
            granted = self._client.auth.approle.login(
                role_id=self._role_id.get_secret_value(),
                secret_id=self._secret_id.get_secret_value(),
                use_token=False,
            )
        except (vault.InvalidRequest, vault.Forbidden, vault.Unauthorized):
            raise SecretsUnavailable(
                f"Vault at {self._address} refuses the login: the role id or secret id is wrong, "
                "has run out or was used up. Issue a new secret id and set MIRA_VAULT_SECRET_ID."
            ) from None
        self._take(granted)
        self._client.token = granted["auth"]["client_token"]

    def _take(self, granted: Any) -> None:
        auth = granted["auth"]
        self._since = self._clock.monotonic()
        self._lease = float(auth["lease_duration"])
        self._renewable = bool(auth["renewable"])

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=self._patience):
            raise SecretsUnavailable(f"Vault at {self._address} is too slow. Try again.")
        try:
            yield
        finally:
            self._lock.release()
