"""What every message is, and where one is sent.

Messages are facts: events are named in the past tense, commands in the imperative, replies by
nouns. Fields are str, int, float, bool, bytes, datetime, UUID, Enum, tuple or another Struct,
so that a message can be written down and read back without loss.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import msgspec


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """An immutable part of a message."""


class Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=True):
    """Anything that can be sent. On the wire its class name stands in `type`."""


class Event(Message, frozen=True, kw_only=True, tag=True):
    """Something that has happened. Only the door of a conversation publishes events."""


class Address(msgspec.Struct, frozen=True, order=True):
    """Who receives: a kind of actor and its key (for conversations, the user's id)."""

    kind: str
    key: str

    #: Separates kind and key in text; not allowed in a kind.
    SEPARATOR: ClassVar[str] = "/"

    def __str__(self) -> str:
        return f"{self.kind}/{self.key}"


class DurableMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message to be written down with its cause and delivered until it is done.

    Order holds within (`to`, `lane`). `at` (aware) is the earliest time; None means at once. An
    undone message with the same (`to`, `lane`, `key`) is replaced.
    """

    to: Address
    message: Message
    at: datetime | None = None
    lane: str = "main"
    key: str | None = None


class DurableRow(msgspec.Struct, frozen=True, kw_only=True):
    """A durable message as it stands in the outbox. `version` rises when it is replaced."""

    id: int
    version: int
    to: Address
    lane: str
    key: str | None
    message: Message
    attempts: int
    due_at: datetime


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a DurableMessage. `head`: no earlier undone row stands in its lane."""

    row: DurableRow
    head: bool
