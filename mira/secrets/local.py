"""The local key store: one sealed file, replaced as a whole under a lock that all writers take."""

from __future__ import annotations

import base64
import fcntl
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import anyio
from anyio import to_thread

from mira.clock import Clock
from mira.errors import SecretsUnavailable
from mira.secrets.base import check_name, check_value
from mira.secrets.master_key import FileKeys, KeyringKeys, MasterKeys, usable_keyring
from mira.secrets.sealed import (
    FORMAT,
    Cipher,
    NotSealedSo,
    SealedFile,
    read_sealed,
    write_sealed,
)

T = TypeVar("T")

#: How long another process may hold the lock before we say so, in seconds.
_LOCK_WITHIN = 10.0
#: How long the system's keyring may take; it may be asking a person to unlock it.
_KEY_WITHIN = 60.0


class LocalSecrets:
    """A key store in a directory. See `Secrets` for what is promised.

    The file is read at every call, so that what another process sets is seen at once.
    """

    def __init__(
        self,
        directory: Path,
        *,
        clock: Clock,
        keyring: Callable[[], KeyringKeys | None] = usable_keyring,
    ) -> None:
        """`directory` exists and is ours alone. Nothing is read or written yet.

        The master key is made with the first secret: in the keyring that `keyring` returns,
        else in `master.key`. From then on it is looked for in that place only.
        """
        self._directory = directory
        self._path = directory / "secrets.json"
        self._file_keys = FileKeys(directory / "master.key")
        self._keyring = keyring
        self._clock = clock
        self._proven: tuple[str, Cipher] | None = None

    def __repr__(self) -> str:
        return f"LocalSecrets({str(self._directory)!r})"

    async def get(self, name: str) -> str | None:
        check_name(name)
        file = await to_thread.run_sync(read_sealed, self._path)
        if file is None or name not in file.entries:
            return None
        cipher = await self._cipher(file)
        try:
            return cipher.open(file.entries[name], name.encode()).decode("utf-8")
        except NotSealedSo:
            raise SecretsUnavailable(
                f"The secret {name} in {self._path} is damaged. Set it again (mira secret set "
                f"{name}), or restore the file from a backup."
            ) from None

    async def set(self, name: str, value: str) -> None:
        check_name(name)
        check_value(value)
        async with self._locked():
            file = await to_thread.run_sync(read_sealed, self._path)
            if file is None:
                file = await self._patiently(self._begin)
            cipher = await self._cipher(file)
            file.entries[name] = cipher.seal(value.encode("utf-8"), name.encode())
            await to_thread.run_sync(write_sealed, self._path, file)

    async def delete(self, name: str) -> bool:
        check_name(name)
        async with self._locked():
            file = await to_thread.run_sync(read_sealed, self._path)
            if file is None or file.entries.pop(name, None) is None:
                return False
            await to_thread.run_sync(write_sealed, self._path, file)
            return True

    async def names(self) -> tuple[str, ...]:
        file = await to_thread.run_sync(read_sealed, self._path)
        return () if file is None else tuple(sorted(file.entries))

    async def tend(self) -> None:
        return None

    async def aclose(self) -> None:
        self._proven = None

    @asynccontextmanager
    async def _locked(self) -> AsyncIterator[None]:
        """Hold the lock that every writer of this directory takes."""
        descriptor = await to_thread.run_sync(self._open_lock)
        try:
            until = self._clock.monotonic() + _LOCK_WITHIN
            while not _try_lock(descriptor):
                if self._clock.monotonic() >= until:
                    raise SecretsUnavailable(
                        f"Another process keeps the key store in {self._directory} locked."
                    )
                await self._clock.sleep(0.02)
            yield
        finally:
            os.close(descriptor)  # Releases the lock.

    def _open_lock(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            return os.open(self._directory / "lock", flags, 0o600)
        except OSError as error:
            raise SecretsUnavailable(
                f"The key store in {self._directory} cannot be written: {error.strerror}."
            ) from None

    def _begin(self) -> SealedFile:
        """Return a new, empty store whose master key has been made."""
        store = base64.b32encode(os.urandom(10)).decode().lower()
        keys = self._keyring() or self._file_keys
        cipher = Cipher(keys.create(store))
        return SealedFile(
            format=FORMAT, store=store, key=keys.kind, check=cipher.check(), entries={}
        )

    async def _cipher(self, file: SealedFile) -> Cipher:
        """Return the cipher of the store, its master key proven to be the right one."""
        if self._proven is None or self._proven[0] != file.check:
            self._proven = (file.check, await self._patiently(self._prove, file))
        return self._proven[1]

    def _prove(self, file: SealedFile) -> Cipher:
        in_keyring = file.key == KeyringKeys.kind
        keys: MasterKeys | None = self._keyring() if in_keyring else self._file_keys
        place = "in the system's keyring" if in_keyring else "in master.key beside it"
        key = None if keys is None else keys.read(file.store)
        if key is None:
            raise SecretsUnavailable(
                f"The master key of {self._path} is missing: it was kept {place}. Restore it, or "
                "move the file away and set the secrets again."
            )
        cipher = Cipher(key)
        if not cipher.fits(file):
            raise SecretsUnavailable(
                f"The master key {place} is not the one that {self._path} was sealed with. "
                "Restore both from the same backup."
            )
        return cipher

    async def _patiently(self, step: Callable[..., T], *args: SealedFile) -> T:
        """Run what may wait for a keyring in a thread; when it hangs, the thread is left alone."""
        try:
            with anyio.fail_after(_KEY_WITHIN):
                return await to_thread.run_sync(step, *args, abandon_on_cancel=True)
        except TimeoutError:
            raise SecretsUnavailable("The system's keyring does not answer. Unlock it.") from None


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
