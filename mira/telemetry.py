"""Structured logging: events with fields, bound to the request and the turn once.

Log events are short names ("turn_committed"), never sentences, and never carry what a user or a
model wrote, nor a secret: `_withhold` blanks the fields in which such things travel, at every
level, so that a slip in one call does not leak.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

import structlog

#: Fields whose value never reaches a log line.
WITHHELD = frozenset(
    {
        "authorization", "content", "cookie", "key", "message", "password", "payload", "prompt",
        "reply", "secret", "set_cookie", "text", "thinking", "token", "value", "arguments",
    }
)  # fmt: skip


#: What is bound to every log line here. A new mapping with every binding, so that it can be
#: handed from task to task, and from actor to actor, as one value.
fields: ContextVar[Mapping[str, str]] = ContextVar("fields", default=MappingProxyType({}))


def _add_fields(
    _logger: Any, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    for name, value in fields.get().items():
        event.setdefault(name, value)
    return event


def _withhold(
    _logger: Any, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    for name in event.keys() & WITHHELD:
        event[name] = "[withheld]"
    return event


def configure(level: str = "info", *, json: bool | None = None) -> None:
    """Set up logging for this process. `json` defaults to whether stderr is no terminal."""
    number = logging.getLevelNamesMapping()[level.upper()]
    as_json = not sys.stderr.isatty() if json is None else json
    dev, processors = structlog.dev, structlog.processors
    renderer: Any = processors.JSONRenderer() if as_json else dev.ConsoleRenderer()
    structlog.configure(
        processors=[
            _add_fields,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _withhold,
            structlog.processors.StackInfoRenderer(),
            structlog.processors.format_exc_info if as_json else _keep,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(level=max(number, logging.WARNING), stream=sys.stderr, force=True)


def _keep(_l: Any, _m: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return event


def logger(name: str) -> structlog.typing.FilteringBoundLogger:
    """Return the logger of one part of the house; `name` becomes the field `part`."""
    bound: structlog.typing.FilteringBoundLogger = structlog.get_logger(part=name)
    return bound


@contextmanager
def bound(**more: str) -> Iterator[None]:
    """Bind fields (request_id, turn_id, user_id) to every log line inside the block."""
    token = fields.set(MappingProxyType({**fields.get(), **more}))
    try:
        yield
    finally:
        fields.reset(token)
