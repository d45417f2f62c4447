"""Structured logging: events with fields, bound to the request and the turn once.

Log events are short names ("turn_committed"), never sentences, and never carry what a user or a
model wrote, nor a secret: `_withhold` blanks the fields in which such things travel, at every
level, so that a slip in one call does not leak.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

import structlog

from mira.errors import MiraError

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


def where_it_failed(error: BaseException) -> str:
    """The kinds of an error and of its causes, and where each was raised, without their words.

    What an exception says may be what a user wrote: a database quotes the row that it refuses.
    Only the words of a MiraError are meant to be read.
    """
    parts = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        frames = traceback.extract_tb(current.__traceback__)
        places = [f"  {f.filename}:{f.lineno} in {f.name}" for f in frames]
        said = f": {current.detail}" if isinstance(current, MiraError) else ""
        parts.append("\n".join([f"{type(current).__name__}{said}", *places]))
        if isinstance(current, BaseExceptionGroup):
            parts += [where_it_failed(inner) for inner in current.exceptions]
        current = current.__cause__ or current.__context__
    return "\ncaused by ".join(parts)


def _explain(
    _logger: Any, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    raised = event.pop("exc_info", None)
    if raised is True:
        raised = sys.exc_info()[1]
    if isinstance(raised, tuple):
        raised = raised[1]
    if isinstance(raised, BaseException):
        event["exception"] = where_it_failed(raised)
    return event


class _PlaceFormatter(logging.Formatter):
    """For what libraries log by themselves: their errors without words, too."""

    def formatException(self, ei: Any) -> str:
        return where_it_failed(ei[1]) if ei[1] is not None else ""


def configure(level: str = "info", *, json: bool | None = None) -> None:
    """Set up logging for this process. `json` defaults to whether stderr is no terminal."""
    number = logging.getLevelNamesMapping()[level.upper()]
    as_json = not sys.stderr.isatty() if json is None else json
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    )
    structlog.configure(
        processors=[
            _add_fields,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _withhold,
            _explain,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_PlaceFormatter("%(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=max(number, logging.WARNING), handlers=[handler], force=True)


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
