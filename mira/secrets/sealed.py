"""The file of the local key store: its format, its cipher, how it is replaced.

    {"format": 1, "store": "<id>", "key": "file"|"keyring", "check": "<sealed>",
     "entries": {"<name>": "<sealed>"}}

Sealed is the base64 of nonce (12 bytes), ciphertext and tag (16 bytes). The name is
authenticated with its value, so that entries cannot be exchanged for one another. `check` seals
a constant: with it a wrong key and a damaged entry can be told apart.
"""

from __future__ import annotations

import base64
import binascii
import os
from pathlib import Path

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from mira.errors import SecretsUnavailable

FORMAT = 1
_NONCE_BYTES = 12
_CHECK = b"mira key store"


class SealedFile(msgspec.Struct, forbid_unknown_fields=True):
    """The content of the file. `store` is its id, `key` the kind of place of its master key."""

    format: int
    store: str
    key: str
    check: str
    entries: dict[str, str]


class NotSealedSo(Exception):
    """What was opened is damaged, or was sealed with another key or under another name."""


class Cipher:
    """AES-256-GCM with a fresh random nonce for every sealing."""

    def __init__(self, key: bytes) -> None:
        self._aead = AESGCM(key)

    def seal(self, content: bytes, name: bytes) -> str:
        # Straight from the operating system, not from the Ids port: under a seeded double a
        # nonce would come twice for one key, and that breaks the cipher.
        nonce = os.urandom(_NONCE_BYTES)
        return base64.b64encode(nonce + self._aead.encrypt(nonce, content, name)).decode()

    def open(self, sealed: str, name: bytes) -> bytes:
        """Return what was sealed under `name`. Raises NotSealedSo."""
        try:
            raw = base64.b64decode(sealed, validate=True)
            return self._aead.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], name)
        except (InvalidTag, binascii.Error, ValueError):
            raise NotSealedSo from None

    def check(self) -> str:
        """Return what a new file keeps to recognise this key by."""
        return self.seal(_CHECK, b"")

    def fits(self, file: SealedFile) -> bool:
        """Whether `file` was sealed with this key."""
        try:
            return self.open(file.check, b"") == _CHECK
        except NotSealedSo:
            return False


def read_sealed(path: Path) -> SealedFile | None:
    """Return the file's content, None if there is no file. Raises SecretsUnavailable."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SecretsUnavailable(f"{path} cannot be read: {error.strerror}.") from None
    try:
        file = msgspec.json.decode(content, type=SealedFile)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise SecretsUnavailable(
            f"{path} is damaged. Restore it from a backup, or move it away and set the secrets "
            "again."
        ) from None
    if file.format != FORMAT:
        raise SecretsUnavailable(
            f"{path} was written by a newer MIRA. Use that one, or a newer one."
        )
    return file


def write_sealed(path: Path, file: SealedFile) -> None:
    """Replace the file in one step, mode 0600, on disk when this returns.

    The caller holds the lock of the directory. Raises SecretsUnavailable; the earlier file
    stands then.
    """
    try:
        replace_through(path, msgspec.json.format(msgspec.json.encode(file)) + b"\n")
    except OSError as error:
        raise SecretsUnavailable(f"{path} cannot be written: {error.strerror}.") from None


def replace_through(path: Path, content: bytes) -> None:
    """Write `<path>.new`, bring it to disk, and put it in the place of `path`."""
    part = path.with_name(path.name + ".new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(part, flags, 0o600), "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
