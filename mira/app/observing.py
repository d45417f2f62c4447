"""The engine's reports as log events; stages of turns as timings."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from mira.actors.runtime.durable import DurableRow
from mira.actors.runtime.observer import Observer
from mira.actors.runtime.system import ActorSystem
from mira.errors import MiraError
from mira.messages.base import Address, Event, Message
from mira.telemetry import logger

log = logger("engine")


class LoggingObserver(Observer):
    """Writes down what the engine reports: kinds and addresses, never what a message says."""

    def actor_failed(self, address: Address, message: Message | None, error: Exception) -> None:
        log.error("actor_failed", address=str(address), what=_kind(message), exc_info=error)

    def message_rejected(self, address: Address, message: Message, error: MiraError) -> None:
        log.warning("message_rejected", address=str(address), what=_kind(message), code=error.code)

    def quarantined(self, address: Address, seconds: float) -> None:
        log.error("actor_quarantined", address=str(address), seconds=round(seconds, 1))

    def handler_failed(self, event: Event, handler: str, error: Exception) -> None:
        log.error("event_handler_failed", event_kind=_kind(event), handler=handler, exc_info=error)

    def job_failed(self, address: Address, kind: str, error: Exception) -> None:
        log.error("job_failed", address=str(address), job=kind, exc_info=error)

    def backed_off(self, row: DurableRow, due_at: datetime, error: Exception) -> None:
        log.warning(
            "durable_message_backed_off",
            outbox_id=row.id, what=_kind(row.message), attempts=row.attempts,
            due_at=due_at.isoformat(), error=type(error).__name__,
        )  # fmt: skip

    def buried(self, row: DurableRow, error: Exception) -> None:
        log.error(
            "durable_message_buried",
            outbox_id=row.id, what=_kind(row.message), error=type(error).__name__,
        )  # fmt: skip

    def outbox_failed(self, error: Exception) -> None:
        log.warning("outbox_failed", error=type(error).__name__)

    def stop_overran(self, running: int) -> None:
        log.warning("stop_overran", running=running)


def numbers(system: ActorSystem) -> Mapping[str, float]:
    """The engine's statistics, flat: for status and metrics."""
    stats = system.stats()
    flat: dict[str, float] = {}
    for kind, counted in stats.kinds.items():
        flat |= {f"actor.{kind}.{name}": v for name, v in _numeric(counted).items()}
    flat |= {f"durable.{name}": value for name, value in _numeric(stats.durable).items()}
    return flat


def _numeric(counted: object) -> dict[str, float]:
    names = getattr(counted, "__slots__", None) or vars(counted)
    found = {name: getattr(counted, name) for name in names}
    return {name: float(v) for name, v in found.items() if isinstance(v, int | float)}


def _kind(message: Message | None) -> str:
    return type(message).__name__
