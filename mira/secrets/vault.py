"""The key store in HashiCorp Vault or OpenBao: a KV version 2 mount, under `mira/<name>`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import anyio
import hvac
from anyio import to_thread
from hvac.exceptions import InvalidPath
from pydantic import SecretStr

from mira.clock import Clock
from mira.errors import SecretsUnavailable
from mira.secrets.base import check_name, check_value
from mira.secrets.vault_session import TIMEOUT, VaultSession
from mira.telemetry import logger

T = TypeVar("T")

log = logger("secrets")

_FOLDER = "mira"
_FIELD = "value"
#: How long one call may take in all, in seconds; a login and a renewal may be part of it.
_WITHIN = 30.0
#: How long to wait before renewing is tried again after a failure, in seconds.
_RETRY = 15.0


class VaultSecrets:
    """A key store in Vault. See `Secrets` for what is promised.

    Calls run in worker threads. A call that is cancelled may still take effect.
    """

    def __init__(
        self,
        address: str,
        *,
        role_id: SecretStr,
        secret_id: SecretStr,
        mount: str,
        ca: Path | None,
        clock: Clock,
        timeout: tuple[float, float] = TIMEOUT,
    ) -> None:
        """Nothing is contacted yet. `timeout`: seconds to connect, and for each answer."""
        self._session = VaultSession(
            address, role_id=role_id, secret_id=secret_id, ca=ca, clock=clock, timeout=timeout
        )
        self._address = address
        self._mount = mount
        self._clock = clock

    def __repr__(self) -> str:
        return f"VaultSecrets({self._address!r}, mount={self._mount!r})"

    async def get(self, name: str) -> str | None:
        path = f"{_FOLDER}/{check_name(name)}"

        def read(client: hvac.Client) -> object:
            try:
                answer = client.secrets.kv.v2.read_secret_version(
                    path=path, mount_point=self._mount, raise_on_deleted_version=False
                )
            except InvalidPath as error:
                _absent(error)
                return None
            # A version that was deleted but not destroyed has no data.
            data = answer["data"]["data"]
            return None if data is None else data.get(_FIELD, _MISSING)

        value = await self._run(read)
        if value is None or isinstance(value, str):
            return value
        raise SecretsUnavailable(
            f"The secret {self._mount}/{path} in Vault has no text in its field '{_FIELD}'. "
            "Set it again."
        )

    async def set(self, name: str, value: str) -> None:
        path = f"{_FOLDER}/{check_name(name)}"
        check_value(value)
        await self._run(
            lambda client: client.secrets.kv.v2.create_or_update_secret(
                path=path, secret={_FIELD: value}, mount_point=self._mount
            )
        )

    async def delete(self, name: str) -> bool:
        path = f"{_FOLDER}/{check_name(name)}"

        def destroy(client: hvac.Client) -> bool:
            kv = client.secrets.kv.v2
            try:
                kv.read_secret_metadata(path=path, mount_point=self._mount)
            except InvalidPath as error:
                return _absent(error)
            # Deleting only the newest version would leave the value readable.
            kv.delete_metadata_and_all_versions(path=path, mount_point=self._mount)
            return True

        return await self._run(destroy)

    async def names(self) -> tuple[str, ...]:
        def listed(client: hvac.Client) -> list[str]:
            try:
                answer = client.secrets.kv.v2.list_secrets(path=_FOLDER, mount_point=self._mount)
            except InvalidPath as error:
                _absent(error)
                return []
            return [str(key) for key in answer["data"]["keys"]]

        return tuple(sorted(key for key in await self._run(listed) if not key.endswith("/")))

    async def tend(self) -> None:
        """Keep the token alive until cancelled, so that a long silence needs no new login."""
        while True:
            try:
                pause = await self._in_thread(self._session.refresh)
            except SecretsUnavailable as error:
                log.warning("vault_token_not_renewed", why=error.detail)
                pause = _RETRY
            if pause is None:
                return
            await self._clock.sleep(max(1.0, pause))

    async def aclose(self) -> None:
        with anyio.move_on_after(5, shield=True):
            await to_thread.run_sync(self._session.close, abandon_on_cancel=True)

    async def _run(self, action: Callable[[hvac.Client], T]) -> T:
        return await self._in_thread(lambda: self._session.call(action))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            with anyio.fail_after(_WITHIN):
                return await to_thread.run_sync(work, abandon_on_cancel=True)
        except TimeoutError:
            raise SecretsUnavailable(
                f"Vault at {self._address} does not answer in time. See whether it is overloaded."
            ) from None


_MISSING = object()


def _absent(error: InvalidPath) -> bool:
    """Return False if `error` only says that nothing is there; raise it if the mount is wrong."""
    if error.errors != []:
        raise error
    return False
