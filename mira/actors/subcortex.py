"""The Subcortex: a small fast model that reads each message before it is answered.

One physical call for a message, none that is made again, and never longer than its asker waits:
whatever goes wrong, the turn goes on with what was recalled without it. The model is a job beside
the mailbox, and nothing is remembered, so that an idle one costs nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Protocol
from uuid import UUID

import msgspec

from mira.actors import subcortex_answer
from mira.actors.booking import booked
from mira.actors.runtime.actor import Actor, Context
from mira.clock import Clock
from mira.errors import DeadlineExceeded, MiraError, ProviderError, ProviderOutage
from mira.ids import Ids
from mira.llm.base import CallRecord, Effort, Finished, Request, Retrying, Switched, SystemBlock
from mira.llm.routing import Routed
from mira.memory.retention import pressure
from mira.memory.surfacing import RETAINED
from mira.messages.base import Address, Message
from mira.messages.content import Role, Said, Text, plain_text
from mira.messages.subcortex import Complexity, Consider, Considered, Fallback
from mira.messages.text import storable
from mira.messages.turn import Usage
from mira.prompt.subcortex import Asked, question
from mira.prompt.templates import Templates
from mira.store import model_calls
from mira.store.database import Database
from mira.store.turns import NewCall
from mira.telemetry import logger

log = logger("subcortex")

KIND = "subcortex"
PURPOSE = "subcortex"
#: Kinds of jobs: those that wait for the model, and those that write down what it cost.
ASKING, BOOKING = "subcortex", "subcortex_books"
#: A model that holds fewer tokens is given the short form.
ROOMY = 8_192


class Model(Protocol):
    """A model behind its routing."""

    @property
    def name(self) -> str: ...

    @property
    def window(self) -> int: ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[Routed]: ...


class Asker(Protocol):
    """Whoever asks: the Context of a handler, or the engine for somebody outside."""

    @property
    def clock(self) -> Clock: ...

    def ask(self, to: Address, message: Message, *, timeout: float) -> Awaitable[object]: ...


@dataclass(frozen=True)
class SubcortexParts:
    """Its surroundings, wired by the composition root."""

    database: Database
    clock: Clock
    ids: Ids
    model: Model
    templates: Templates


def subcortex_of(user_id: UUID) -> Address:
    """The address of a user's Subcortex."""
    return Address(KIND, str(user_id))


def effort(considered: Considered | None) -> Effort:
    """How much thought the answer gets: high, unless the message is known to be straightforward."""
    if considered is not None and considered.complexity is Complexity.STRAIGHTFORWARD:
        return Effort.MEDIUM
    return Effort.HIGH


async def consider(ctx: Asker, user_id: UUID, message: Consider, *, timeout: float) -> Considered:
    """Ask a user's Subcortex, within `timeout` seconds. Never raises a MiraError: whatever goes
    wrong is a fallback."""
    began = ctx.clock.monotonic()
    try:
        found = await ctx.ask(subcortex_of(user_id), message, timeout=timeout)
        assert isinstance(found, Considered)
    except DeadlineExceeded:
        found = Considered(fallback=Fallback.LATE)
    except MiraError as error:
        log.warning("not_considered", code=error.code)
        found = Considered(fallback=Fallback.FAILED)
    return msgspec.structs.replace(found, latency_ms=(ctx.clock.monotonic() - began) * 1000)


class Subcortex(Actor):
    """One user's."""

    __slots__ = ("_parts", "_user_id")

    def __init__(self, parts: SubcortexParts, user_id: UUID) -> None:
        self._parts = parts
        self._user_id = user_id

    async def receive(self, message: Message, ctx: Context) -> object:
        """Consider is answered with Considered. Its deadline closes the model's stream."""
        if not isinstance(message, Consider):
            raise NotImplementedError(type(message).__name__)
        ctx.job(ASKING, partial(self._consider, ctx, message), take_reply=True)
        return None

    async def _consider(self, ctx: Context, message: Consider) -> Considered:
        parts = self._parts
        began = parts.clock.monotonic()
        asked = question(
            parts.templates, message, pressure=pressure(len(message.memories)).value,
            most=RETAINED, short=is_weak(parts.model),
        )  # fmt: skip
        calls: list[CallRecord] = []
        answer = ""
        fallback: Fallback | None = None
        reading: subcortex_answer.Reading | None = None
        try:
            answer = await self._answer(asked, calls)
            reading = subcortex_answer.read(answer, message.memories)
            fallback = Fallback.UNREADABLE if reading is None else None
        except ProviderError as error:
            log.info("model_failed", code=error.code)
            fallback = Fallback.FAILED
        finally:
            # After the reply, which does not wait for it; and also if nobody waits any more.
            self._book(ctx, message.turn_id, calls)
        result = Considered(
            fallback=fallback, latency_ms=(parts.clock.monotonic() - began) * 1000,
            asked=asked.data, answer=answer, usage=sum((c.usage for c in calls), Usage()),
        )  # fmt: skip
        log.info("considered", fallback=fallback, latency_ms=round(result.latency_ms))
        if reading is None:
            return result
        return msgspec.structs.replace(
            result, phrases=reading.phrases, entities=reading.entities, retain=reading.retain,
            complexity=reading.complexity,
        )  # fmt: skip

    async def _answer(self, asked: Asked, calls: list[CallRecord]) -> str:
        """The model's words, of one physical call; that is added to `calls` however it ends."""
        items: Routed | None = None
        try:
            async with self._parts.model.stream(request_of(asked)) as items:
                async for item in items:
                    if isinstance(item, Finished):
                        return storable(plain_text(item.blocks)[: subcortex_answer.LONGEST])
                    if isinstance(item, Retrying | Switched) and items.calls:
                        # What comes now would be a second call, and there is no time for it.
                        raise ProviderOutage(item.reason)
            raise ProviderOutage("The model's answer has no end.")
        finally:
            calls += items.calls if items is not None else ()

    def _book(self, ctx: Context, turn_id: UUID, calls: Sequence[CallRecord]) -> None:
        written = [booked(self._parts.ids.new(), call, PURPOSE) for call in calls]
        if not written:
            return
        try:
            ctx.job(BOOKING, partial(self._write, turn_id, written))
        except MiraError as error:
            log.warning("calls_not_booked", code=error.code, calls=len(written))

    async def _write(self, turn_id: UUID, calls: Sequence[NewCall]) -> None:
        parts = self._parts
        try:
            async with parts.database.user(self._user_id) as tx:
                await model_calls.book(tx, self._user_id, calls, parts.clock.now(), turn_id=turn_id)
        except MiraError as error:
            log.warning("calls_not_booked", code=error.code, calls=len(calls))


def request_of(asked: Asked) -> Request:
    """The call that asks a question."""
    return Request(
        system=(SystemBlock(text=asked.system, cache=True),),
        messages=(Said(role=Role.USER, blocks=(Text(text=asked.data),)),),
        max_output_tokens=asked.tokens,
        effort=Effort.LOW,
        answer_schema=asked.schema,
    )


def is_weak(model: Model) -> bool:
    """Whether a model is given the short form: it holds little, or reads slowly."""
    return model.window < ROOMY or model.name.startswith("local:")
