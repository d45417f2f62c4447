"""Ids, secrets and chance as a port: the only place that draws random bits.

`SystemIds` is the real one; `SeededIds` is the deterministic double shipped for tests.
"""

from __future__ import annotations

import base64
import random
import secrets
from typing import Protocol
from uuid import UUID

import uuid_utils


class Ids(Protocol):
    """Where new identities and chance come from."""

    def new(self) -> UUID:
        """Return a new UUIDv7: unique, and rising with time within a process."""
        ...

    def token(self, bits: int = 256) -> str:
        """Return `bits` random bits as URL-safe text, fit for a key or a one-time link."""
        ...

    def uniform(self, low: float, high: float) -> float:
        """Return a number drawn evenly from [low, high]; for jitter, not for secrets."""
        ...


class SystemIds:
    """Ids from the operating system's randomness."""

    def new(self) -> UUID:
        return UUID(bytes=uuid_utils.uuid7().bytes)

    def token(self, bits: int = 256) -> str:
        return _text(secrets.token_bytes((bits + 7) // 8))

    def uniform(self, low: float, high: float) -> float:
        return random.uniform(low, high)


class SeededIds:
    """The same ids in the same order for the same seed. Never for anything secret."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)
        self._count = 0

    def new(self) -> UUID:
        self._count += 1
        head = (self._count << 16) | 0x7000
        return UUID(int=(head << 64) | (0x8 << 60) | self._random.getrandbits(60))

    def token(self, bits: int = 256) -> str:
        return _text(self._random.randbytes((bits + 7) // 8))

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
