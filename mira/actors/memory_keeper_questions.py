"""Questions to a model whose answer is read by a program: rendered, asked, read, booked.

An answer that cannot be read is asked for once more, with the reason. What was spent is told in
every case, so that it can be written down with whatever becomes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from mira.actors.booking import booked
from mira.actors.runtime.actor import Context
from mira.errors import ProviderError, ProviderMalformed
from mira.ids import Ids
from mira.llm.base import CallRecord, Effort, Finished, Request, StopReason, SystemBlock
from mira.llm.routing import Routed
from mira.messages.content import Role, Said, Text, plain_text
from mira.prompt.templates import Templates
from mira.store.extraction import Spent
from mira.store.turns import NewCall

T = TypeVar("T")

#: Tokens of an answer, with what some models think before it.
LONGEST_ANSWER = 8192


class Model(Protocol):
    """A model behind its routing."""

    @property
    def window(self) -> int: ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[Routed]: ...


@dataclass(frozen=True)
class Question:
    """`template` names the instructions; the data stand in the template of its name and `_data`.
    Without a `schema` the answer is plain text; `longest`: its tokens at most."""

    purpose: str
    template: str
    schema: str | None
    instructions: Mapping[str, Hashable]
    data: Mapping[str, Hashable]
    longest: int = LONGEST_ANSWER


@dataclass(frozen=True)
class Answered(Generic[T]):
    """What came of a question: a value, or the error that says why there is none."""

    calls: tuple[NewCall, ...]
    value: T | None = None
    error: ProviderError | None = None

    @property
    def spent(self) -> Spent:
        """All calls and tokens, those that a cache was read for or written with among them."""
        return Spent(
            calls=len(self.calls),
            input_tokens=sum(
                c.input_tokens + c.cache_read_tokens + c.cache_write_tokens for c in self.calls
            ),
            output_tokens=sum(c.output_tokens for c in self.calls),
        )

    def taken(self) -> T:
        """The value. Raises the error if there is none."""
        if self.error is not None:
            raise self.error
        assert self.value is not None
        return self.value


#: Refusals that concern the account or the model, and end when somebody sees to them.
_NOT_THE_QUESTION = frozenset({401, 402, 403, 404, 429})


def blameless(error: ProviderError) -> bool:
    """Whether an error says nothing against the question: asked again later it may be answered."""
    return error.outage or error.http_status in _NOT_THE_QUESTION


def gives_up(ctx: Context, error: ProviderError) -> bool:
    """Whether a question whose answer is an error for the third time is to be left for the next
    use-day: a model that cannot answer it should not be paid for trying."""
    return not blameless(error) and ctx.durable is not None and ctx.durable.attempts >= 2


class Questions:
    """Asks one model."""

    def __init__(self, model: Model, templates: Templates, ids: Ids) -> None:
        self._model = model
        self._templates = templates
        self._ids = ids

    @property
    def characters(self) -> int:
        """How much of a conversation fits one question, beside everything else."""
        return max(1_500, min(12_000, (self._model.window // 2 - 1_500) * 3))

    def request(self, question: Question) -> Request:
        """The call that asks a question."""
        data = self._templates.render(f"{question.template}_data", **question.data)
        instructions = self._templates.render(question.template, **question.instructions)
        return Request(
            system=(SystemBlock(text=instructions),),
            messages=(Said(role=Role.USER, blocks=(Text(text=data),)),),
            max_output_tokens=min(question.longest, self._model.window // 4),
            effort=Effort.LOW,
            answer_schema=question.schema,
        )

    async def ask(
        self,
        question: Question,
        parse: Callable[[str, bool], T],
        *,
        given: Finished | None = None,
        incomplete: Callable[[T], bool] = lambda _value: False,
        tries: int = 2,
        again: str = "again",
    ) -> Answered[T]:
        """Ask, and again, `tries` times in all, if the answer cannot be read or is `incomplete`.

        `parse` gets the words and whether they were cut at their limit; it raises
        ProviderMalformed for what it cannot read, and the template `again` tells the model why.
        `given` stands for the first answer if there is one already. Never raises a ProviderError:
        it is in what is returned.
        """
        request = self.request(question)
        calls: list[NewCall] = []
        value: T | None = None
        reason = ""
        for attempt in range(1, tries + 1):
            try:
                finished = (
                    given if given is not None else await self._call(request, question, calls)
                )
            except ProviderError as error:
                return Answered(tuple(calls), value, None if value is not None else error)
            if given is not None:
                calls.append(booked(self._ids.new(), _record(given), question.purpose))
                given = None
            words = plain_text(finished.blocks)
            cut = finished.stop is StopReason.MAX_TOKENS
            try:
                found = parse(words, cut)
            except ProviderMalformed as malformed:
                if attempt == tries and value is None:
                    return Answered(tuple(calls), None, malformed)
                reason = malformed.detail
            else:
                value = found
                if not incomplete(value):
                    break
                cut, reason = True, "It ends in the middle."
            request = _continued(
                request, words, self._templates.render(again, reason=reason, cut=cut)
            )
        return Answered(tuple(calls), value)

    async def _call(self, request: Request, question: Question, calls: list[NewCall]) -> Finished:
        """One answer; every physical call that it took is added to `calls`."""
        items: Routed | None = None
        try:
            async with self._model.stream(request) as items:
                async for item in items:
                    if isinstance(item, Finished):
                        return item
            raise ProviderMalformed("The model's answer has no end.")
        finally:
            calls += [
                booked(self._ids.new(), c, question.purpose) for c in (items.calls if items else ())
            ]


def _record(given: Finished) -> CallRecord:
    """An answer that came otherwise, for the books: nobody has measured its time."""
    return CallRecord(
        provider=given.provider,
        model=given.model,
        usage=given.usage,
        first_event_ms=None,
        total_ms=0.0,
    )


def _continued(request: Request, words: str, again: str) -> Request:
    """The same conversation with the answer in it and what is to be said about it."""
    answer = (Said(role=Role.ASSISTANT, blocks=(Text(text=words),)),) if words.strip() else ()
    return Request(
        system=request.system,
        messages=(
            *request.messages,
            *answer,
            Said(role=Role.USER, blocks=(Text(text=again),)),
        ),
        max_output_tokens=request.max_output_tokens,
        effort=request.effort,
        answer_schema=request.answer_schema,
    )
