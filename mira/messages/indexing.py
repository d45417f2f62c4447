"""Taking the history into the search."""

from __future__ import annotations

from mira.messages.base import Message


class IndexHistory(Message, frozen=True, kw_only=True):
    """Turns have ended whose messages cannot be found yet. Durable, one per conversation; written
    by the statement that settles a turn."""
