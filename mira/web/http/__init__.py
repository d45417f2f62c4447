"""The HTTP surface, one file for each kind of resource."""

from __future__ import annotations

from mira.web.endpoint import Endpoint
from mira.web.http import (
    actions,
    chat,
    entities,
    files,
    health,
    history,
    keys,
    memories,
    memory_history,
    memory_reading,
    operation,
    segments,
    session,
    traces,
    turns,
)

#: Every endpoint, in the order in which the documentation shows them.
ENDPOINTS: tuple[Endpoint, ...] = (
    *chat.ENDPOINTS,
    *turns.ENDPOINTS,
    *traces.ENDPOINTS,
    *history.ENDPOINTS,
    *files.ENDPOINTS,
    *segments.ENDPOINTS,
    *memories.ENDPOINTS,
    *memory_reading.ENDPOINTS,
    *memory_history.ENDPOINTS,
    *entities.ENDPOINTS,
    *actions.ENDPOINTS,
    *session.ENDPOINTS,
    *keys.ENDPOINTS,
    *operation.ENDPOINTS,
    *health.ENDPOINTS,
)
