"""Segments: the stretches of the one conversation between silences."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from mira.messages.base import Event


class SegmentState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    COLLAPSING = "collapsing"
    COLLAPSED = "collapsed"


class SegmentOpened(Event, frozen=True, kw_only=True):
    user_id: UUID
    segment_id: UUID
    at: datetime
