"""What the engine reports. The default hears and says nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import ParamSpec

from mira.errors import MiraError
from mira.messages.base import Address, Event, Message

from .durable import DurableRow

P = ParamSpec("P")


class Observer:
    """The port to logs and metrics. Subclass it and override what is of interest.

    Called in the middle of things: a method returns at once and does not raise. One that raises
    all the same is not heard of again for that call; the engine goes on.
    """

    def actor_failed(self, address: Address, message: Message | None, error: Exception) -> None:
        """A handler, load or passivate raised what is not a MiraError; the instance is dropped."""

    def message_rejected(self, address: Address, message: Message, error: MiraError) -> None:
        """A handler raised a MiraError, or was never begun, and nobody waits for an answer."""

    def quarantined(self, address: Address, seconds: float) -> None:
        """An address failed too often and rests for so many seconds."""

    def handler_failed(self, event: Event, handler: str, error: Exception) -> None:
        """A contributor or handler of an event failed or was too slow; the others went on."""

    def job_failed(self, address: Address, kind: str, error: Exception) -> None:
        """A job raised what is not a MiraError."""

    def backed_off(self, row: DurableRow, due_at: datetime, error: Exception) -> None:
        """A durable message will be tried again."""

    def buried(self, row: DurableRow, error: Exception) -> None:
        """A durable message is a dead letter now."""

    def outbox_failed(self, error: Exception) -> None:
        """The store of durable messages could not be used; it is tried again."""

    def stop_overran(self, running: int) -> None:
        """At stop so many handlers and jobs were still running when the grace was over."""


def report(call: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
    """Call a method of an observer. A log that cannot be written must not stop an actor."""
    with suppress(Exception):
        call(*args, **kwargs)
