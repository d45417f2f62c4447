"""The HTTP surface, one file for each kind of resource."""

from __future__ import annotations

from mira.web.endpoint import Endpoint
from mira.web.http import actions, chat, health, history, keys, operation, session, turns

#: Every endpoint, in the order in which the documentation shows them.
ENDPOINTS: tuple[Endpoint, ...] = (
    *chat.ENDPOINTS,
    *turns.ENDPOINTS,
    *history.ENDPOINTS,
    *actions.ENDPOINTS,
    *session.ENDPOINTS,
    *keys.ENDPOINTS,
    *operation.ENDPOINTS,
    *health.ENDPOINTS,
)
