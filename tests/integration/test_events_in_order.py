"""What a conversation announces: each event once, in the order in which things happen."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from mira.clock import SystemClock
from mira.llm.base import ProviderItem, Request
from mira.llm.scripted import ScriptedProvider, calls, says
from mira.messages.base import Event
from mira.messages.content import ToolResult, ToolUse
from mira.messages.stream import Completed
from mira.messages.turn import ToolCalled, TurnCompleted, TurnStarted
from mira.store.database import Database
from mira.store.users import User
from tests.support.core import Core, running_core
from tests.support.effects import FileTools

pytestmark = pytest.mark.anyio


def use(call_id: str, name: str, text: str = "milk") -> ToolUse:
    return ToolUse(call_id=call_id, name=name, arguments=f'{{"text": "{text}"}}')


class Diligent(ScriptedProvider):
    """Reads, notes and reads again in each turn before it answers, whoever asks."""

    def __init__(self) -> None:
        asks = calls(use("a", "read"), use("b", "note"), use("c", "read"))
        self._asks, self._answers = asks, says("Noted.")
        super().__init__([asks], clock=SystemClock())

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[ProviderItem]]:
        answered = any(isinstance(b, ToolResult) for b in request.messages[-1].blocks)
        self._script = [self._answers if answered else self._asks]
        async with super().stream(request) as items:
            yield items


def of(core: Core, user: User) -> list[Event]:
    """What was announced of a user, without the sections of prompts."""
    return [
        one
        for one in core.events_heard.heard
        if getattr(one, "user_id", None) == user.id and type(one).__name__ != "TrinketRendered"
    ]


def names(events: list[Event]) -> list[str]:
    return [type(one).__name__ for one in events]


def tools(events: list[Event]) -> list[tuple[str, str, bool]]:
    return [(one.call_id, one.tool, one.ok) for one in events if isinstance(one, ToolCalled)]


async def settled(core: Core, user: User, count: int) -> None:
    with anyio.fail_after(20):
        while names(of(core, user)).count("TurnCompleted") < count:
            await core.parts.clock.sleep(0.01)


async def test_what_conversations_announce_keeps_its_order_in_each_however_many_speak(
    database: Database, user: User, other: User, tmp_path: Path
) -> None:
    turn = ["TurnStarted", "PromptComposed", *["ToolCalled"] * 3, "TurnCompleted"]
    async with running_core(
        database, model=Diligent(), tools=FileTools(tmp_path / "notes")
    ) as core:

        async def talk(who: User) -> None:
            for n in range(3):
                assert isinstance(await core.ask(who.id, f"message {n}"), Completed)

        async with anyio.create_task_group() as group:
            group.start_soon(talk, user)
            group.start_soon(talk, other)
        for who in (user, other):
            await settled(core, who, 3)
            said = of(core, who)
            assert names(said) == ["SegmentOpened", "UseDayAdvanced", *turn * 3]
            started = [one.seq for one in said if isinstance(one, TurnStarted)]
            ended = [one.seq for one in said if isinstance(one, TurnCompleted)]
            assert started == ended == [1, 2, 3]
            # Those that may overlap are told first, in the order of the calls.
            assert [call[1] for call in tools(said)] == ["read", "read", "note"] * 3
            assert all(ok for _, _, ok in tools(said))
    assert core.bugs == []


async def test_of_a_call_that_was_not_made_nothing_is_told_and_of_one_that_failed_that_it_did(
    database: Database, user: User, tmp_path: Path
) -> None:
    asks = calls(
        use("a", "fly"),
        ToolUse(call_id="b", name="note", arguments="[1]"),
        use("c", "read"),
        use("d", "send"),
    )
    (tmp_path / "notes").write_text("milk")
    script = (asks, says("Sent."))
    async with running_core(database, *script, tools=FileTools(tmp_path / "notes")) as core:
        await core.ask(user.id, "Send it.")
        await settled(core, user, 1)
        assert tools(of(core, user)) == [("c", "read", True)]
        # What the user allows is told when it is done, between the two turns.
        [action] = (await core.conversations.standing(user.id)).confirmations
        await core.conversations.confirm(user.id, action.action_id, True)
        await settled(core, user, 2)
        said = of(core, user)
        assert tools(said) == [("c", "read", True), ("d", "send", True)]
        assert names(said)[-4:] == ["ToolCalled", "TurnStarted", "PromptComposed", "TurnCompleted"]
    assert core.bugs == []
