"""The working state of a conversation: what the door must remember from turn to turn.

It is written with the commit of the turn that changes it, and begins anew with each segment.
"""

from __future__ import annotations

from uuid import UUID

import msgspec

from mira.telemetry import logger

log = logger("door")


class WorkingState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`surfaced` are the memories that the last turn was shown: the next may retain them."""

    surfaced: tuple[UUID, ...] = ()

    def encode(self) -> str:
        """JSON text, for the database."""
        return msgspec.json.encode(self).decode()


def decode_working(raw: str) -> WorkingState:
    """Read what `encode` wrote. Fields that a later version has added are passed over; what cannot
    be understood at all is a new beginning, since no conversation may depend on it."""
    try:
        return msgspec.json.decode(raw, type=WorkingState)
    except msgspec.MsgspecError:
        log.warning("working_state_unreadable")
        return WorkingState()
