"""What the surfaces need from the rest of the house: one frozen record, wired by the app."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

import anyio
import msgspec

from mira.actors.conversations import Conversations
from mira.actors.renders import Renders
from mira.clock import Clock
from mira.ids import Ids
from mira.memory.memories import Memories
from mira.memory.passages import PassageSearch
from mira.settings import Settings
from mira.store.cache import Cache
from mira.store.database import Database


class SecretNames(Protocol):
    """The part of the key store that the surfaces may touch: names and writing, never reading.

    All raise SecretsUnavailable when the store cannot be reached or is sealed, and
    ValidationFailed for a name or value that cannot be kept.
    """

    async def names(self) -> tuple[str, ...]: ...

    async def set(self, name: str, value: str) -> None: ...

    async def delete(self, name: str) -> bool:
        """False if there was none."""
        ...


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Which model serves a purpose, as `provider:model`, and a word on it where one is due."""

    purpose: str
    model: str
    note: str = ""


@dataclass(frozen=True)
class Check:
    """One component's health: `run` returns a short detail or raises.

    A component without which nothing can be answered is `critical`; the failing of another one
    only degrades.
    """

    name: str
    run: Callable[[], Awaitable[str]]
    critical: bool = True


@dataclass(frozen=True)
class Limits:
    """Bounds of the surfaces. Times in seconds, sizes in bytes."""

    body: int = 1024 * 1024
    frame: int = 512 * 1024
    auth_within: float = 10.0
    #: A send to a WebSocket that takes longer than this ends the connection.
    send_within: float = 20.0
    #: How long the running turn is held back at connect for a client that is about to resume it.
    resume_within: float = 0.25
    sse_heartbeat: float = 15.0
    connections: int = 2000
    connections_per_user: int = 256
    #: Token buckets: per second, and at once. Frames of one WebSocket; requests of one key.
    frames_rate: float = 50.0
    frames_burst: float = 200.0
    requests_rate: float = 100.0
    requests_burst: float = 500.0
    #: How long a verified key is believed without asking the database again.
    key_memory: float = 5.0
    check_within: float = 2.0
    #: What a stopping server tells clients to wait before they come back.
    reconnect_after: float = 2.0


def _no_numbers() -> Mapping[str, float]:
    return {}


def _nothing() -> None:
    return None


def _no_models() -> Sequence[ModelInfo]:
    return ()


@dataclass(frozen=True)
class WebServices:
    """The ports of the surfaces."""

    conversations: Conversations
    memories: Memories
    #: What was said, searched.
    passages: PassageSearch
    #: The sections of the last prompt of each user.
    renders: Renders
    database: Database
    cache: Cache
    secrets: SecretNames
    clock: Clock
    ids: Ids
    settings: Settings
    #: The user for whom the local admin token speaks.
    owner: UUID
    #: Set when the process is about to stop.
    stop: anyio.Event
    #: Proves that a caller can read MIRA_HOME; empty switches it off.
    admin_token: str = ""
    checks: tuple[Check, ...] = ()
    #: Names and numbers of the engine, for status and metrics.
    engine: Callable[[], Mapping[str, float]] = _no_numbers
    models: Callable[[], Sequence[ModelInfo]] = _no_models
    #: Called when durable work was added outside the engine.
    work_added: Callable[[], None] = _nothing
    limits: Limits = field(default_factory=Limits)
