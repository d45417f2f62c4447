"""Models that hold little, messages and results that are long: the thread goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import pytest

from mira.clock import SystemClock
from mira.errors import ContextOverflow
from mira.llm.base import ProviderItem, Request
from mira.llm.scripted import Answer, ScriptedProvider, calls, says
from mira.messages.content import ToolResult, ToolUse
from mira.messages.stream import Completed
from mira.messages.tool import ToolCall, ToolDescription, ToolOutcome
from mira.prompt.budget import estimate, estimate_said
from mira.store.database import Database
from mira.store.users import User
from tests.support.core import running_core

pytestmark = pytest.mark.anyio


class Narrow(ScriptedProvider):
    """A model that refuses what it cannot hold."""

    def __init__(self, *script: Answer, window: int) -> None:
        super().__init__(script, clock=SystemClock(), window=window)
        self.refused = 0

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[ProviderItem]]:
        system = sum(estimate(block.text) for block in request.system)
        if system + sum(map(estimate_said, request.messages)) > self.window:
            self.refused += 1
            raise ContextOverflow("It is too long.")
        async with super().stream(request) as items:
            yield items


class Library:
    """A tool that says far more than anybody can read."""

    async def open(self, user_id: UUID, turn_id: UUID) -> Library:
        return self

    def menu(self) -> tuple[ToolDescription, ...]:
        return (ToolDescription(name="read", description="Read.", parameters="{}"),)

    def needs_confirmation(self, call: ToolCall) -> bool:
        return False

    async def call(self, call: ToolCall) -> ToolOutcome:
        return ToolOutcome(text=f"{call.arguments} {'word ' * 200_000}")


def reads(number: int) -> Answer:
    return calls(ToolUse(call_id=f"call-{number}", name="read", arguments=f'{{"book": {number}}}'))


@pytest.mark.parametrize("window", [4_096, 8_192, 32_000])
@pytest.mark.parametrize("letters", ["a ", "猫"])
async def test_messages_many_times_too_long_for_the_model_are_answered_all_the_same(
    database: Database, user: User, letters: str, window: int
) -> None:
    model = Narrow(says("Good."), window=window)
    async with running_core(database, model=model) as core:
        for _ in range(3):
            long = (letters * 100_000)[:100_000]
            assert isinstance(await core.ask(user.id, long), Completed)
        assert isinstance(await core.ask(user.id, "And now?"), Completed)
    assert model.refused == 0
    assert core.bugs == []


async def test_results_that_overflow_the_model_in_the_middle_of_a_turn_are_cut_too(
    database: Database, user: User
) -> None:
    model = Narrow(*map(reads, range(4)), says("Read."), window=16_000)
    async with running_core(database, model=model, tools=Library()) as core:
        assert isinstance(await core.ask(user.id, "Read them all."), Completed)
        assert isinstance(await core.ask(user.id, "And now?"), Completed)
    assert 0 < model.refused <= 2
    results = [
        block.call_id
        for said in model.requests[4].messages
        for block in said.blocks
        if isinstance(block, ToolResult)
    ]
    assert results == [f"call-{number}" for number in range(4)]
    assert core.bugs == []
