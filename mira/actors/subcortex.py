"""The Subcortex: a small fast model that reads each message before it is answered."""

from __future__ import annotations

from uuid import UUID

from mira.actors.runtime.actor import Context
from mira.messages.base import Address
from mira.messages.subcortex import Consider, Considered

KIND = "subcortex"


def subcortex_of(user_id: UUID) -> Address:
    """The address of a user's Subcortex."""
    return Address(KIND, str(user_id))


async def consider(ctx: Context, user_id: UUID, message: Consider, *, timeout: float) -> Considered:
    """Ask a user's Subcortex, within `timeout` seconds. Never raises a MiraError: whatever goes
    wrong is a fallback."""
    raise NotImplementedError
