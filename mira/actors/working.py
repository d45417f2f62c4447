"""The working state of a conversation: what the door must remember from turn to turn.

It is written with the commit of the turn that changes it, and begins anew with each segment.
"""

from __future__ import annotations

from uuid import UUID

import msgspec


class WorkingState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`surfaced` are the memories that the last turn was shown: the next may retain them."""

    surfaced: tuple[UUID, ...] = ()

    def encode(self) -> str:
        """JSON text, for the database."""
        return msgspec.json.encode(self).decode()


def decode_working(raw: str) -> WorkingState:
    """Read what `encode` wrote. A state that a later version wrote is read as far as it goes."""
    return msgspec.json.decode(raw, type=WorkingState)
