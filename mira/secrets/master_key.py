"""Where the key of the local key store is kept: the system's keyring, or a file only we read."""

from __future__ import annotations

import base64
import binascii
import importlib
import os
from pathlib import Path
from typing import Protocol

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from mira.errors import SecretsUnavailable
from mira.secrets.sealed import replace_through

KEY_BYTES = 32
_SERVICE = "mira"


class MasterKeys(Protocol):
    """A place for master keys. `kind` is written into the store, so that it is found again.

    Methods block, and raise SecretsUnavailable when the place is closed or unsafe.
    """

    kind: str

    def read(self, store: str) -> bytes | None:
        """Return the key of the store with this id; None if there is none."""
        ...

    def create(self, store: str) -> bytes:
        """Make a key, keep it, and return it. The caller holds the lock of the store."""
        ...


class FileKeys:
    """The key in a file of mode 0600, in text."""

    kind = "file"

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, store: str) -> bytes | None:
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SecretsUnavailable(
                f"The master key {self._path} cannot be read: {error.strerror}."
            ) from None
        with os.fdopen(descriptor, "rb") as file:
            entry = os.fstat(file.fileno())
            if entry.st_mode & 0o077:
                raise SecretsUnavailable(
                    f"Others may read the master key {self._path}. Close it (chmod 600 "
                    f"{self._path}), and replace the secrets if others use this machine."
                )
            if entry.st_uid != os.geteuid():
                raise SecretsUnavailable(
                    f"The master key {self._path} belongs to another user. Start MIRA as that user."
                )
            text = file.read(1024)
        return _decode(text, str(self._path))

    def create(self, store: str) -> bytes:
        # A key that is there already is kept: a store that was moved away may need it again.
        if (key := self.read(store)) is not None:
            return key
        key = AESGCM.generate_key(KEY_BYTES * 8)
        try:
            replace_through(self._path, base64.b64encode(key) + b"\n")
        except OSError as error:
            raise SecretsUnavailable(
                f"The master key {self._path} cannot be written: {error.strerror}."
            ) from None
        return key


class KeyringBackend(Protocol):
    """What is used of the `keyring` package's backends."""

    def get_password(self, service: str, username: str) -> str | None: ...

    def set_password(self, service: str, username: str, password: str) -> None: ...


class KeyringKeys:
    """The key in the operating system's keyring, under the id of the store."""

    kind = "keyring"

    def __init__(self, backend: KeyringBackend) -> None:
        self._backend = backend

    def read(self, store: str) -> bytes | None:
        try:
            text = self._backend.get_password(_SERVICE, store)
        # The backends raise what they like: D-Bus errors, locked collections, their own.
        except Exception as error:
            raise SecretsUnavailable(
                f"The system's keyring does not answer ({type(error).__name__}). Unlock it."
            ) from None
        return None if text is None else _decode(text.encode(), "in the system's keyring")

    def create(self, store: str) -> bytes:
        key = AESGCM.generate_key(KEY_BYTES * 8)
        try:
            self._backend.set_password(_SERVICE, store, base64.b64encode(key).decode())
        except Exception as error:
            raise SecretsUnavailable(
                f"The system's keyring takes no key ({type(error).__name__}). Unlock it."
            ) from None
        if self.read(store) != key:
            raise SecretsUnavailable("The system's keyring does not keep what it is given.")
        return key


def usable_keyring() -> KeyringKeys | None:
    """Return the system's keyring if the `keyring` package is here and has a real backend."""
    try:
        keyring = importlib.import_module("keyring")
        backend = keyring.get_keyring()
        # The package's own ranking: below 1 are the ones that refuse, store nothing or in clear.
        usable = backend.priority >= 1
    except Exception:  # Not installed, or its backend cannot be made: then it is not usable.
        return None
    return KeyringKeys(backend) if usable else None


def _decode(text: bytes, where: str) -> bytes:
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except binascii.Error:
        key = b""
    if len(key) != KEY_BYTES:
        raise SecretsUnavailable(
            f"The master key {where} is damaged. Restore it from a backup of the same home."
        )
    return key
