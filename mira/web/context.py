"""What the parts of the surfaces share, made once by `mira.web.app.build`."""

from __future__ import annotations

from dataclasses import dataclass, field

from mira.web.auth import Authenticator
from mira.web.buckets import RateLimiter
from mira.web.connections import Connections
from mira.web.encoding import Encoded
from mira.web.health import Health
from mira.web.metrics import Metrics
from mira.web.services import WebServices
from mira.web.turnstile import Turnstile
from mira.web.wanted import Wanted


@dataclass(frozen=True)
class Context:
    services: WebServices
    auth: Authenticator
    limiter: RateLimiter
    encoded: Encoded
    wanted: Wanted
    metrics: Metrics
    health: Health
    connections: Connections
    #: On the clock's monotonic scale.
    began: float
    #: So many files are read at once, each in a process of its own.
    reading: Turnstile = field(default_factory=lambda: Turnstile(2))
