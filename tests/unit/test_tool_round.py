"""A call of a tool always comes to an outcome."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import anyio
import pytest
from trio.testing import MockClock

from mira.actors import tool_round
from mira.errors import NotFound
from mira.messages.tool import ToolCall, ToolDescription, ToolOutcome

pytestmark = pytest.mark.anyio
CALL = ToolCall(turn_id=UUID(int=1), call_id="c", name="wait", arguments="{}")


@pytest.fixture
def anyio_backend() -> Any:
    return ("trio", {"clock": MockClock(autojump_threshold=0)})


class _Waits:
    """Takes `seconds`, then answers, or fails."""

    def __init__(self, seconds: float, error: Exception | None = None) -> None:
        self._seconds = seconds
        self._error = error

    def menu(self) -> tuple[ToolDescription, ...]:
        return ()

    def needs_confirmation(self, call: ToolCall) -> bool:
        return False

    async def call(self, call: ToolCall) -> ToolOutcome:
        await anyio.sleep(self._seconds)
        if self._error:
            raise self._error
        return ToolOutcome(text="done")


async def test_a_call_that_hangs_is_given_up_and_its_outcome_said_to_be_unknown() -> None:
    began = anyio.current_time()
    outcome = await tool_round.attempt(_Waits(1e9), CALL)
    assert (outcome.text, outcome.is_error) == (tool_round.TOO_LONG, True)
    assert anyio.current_time() - began == pytest.approx(tool_round.CALL_TIMEOUT)


async def test_a_slow_call_within_its_time_is_answered() -> None:
    outcome = await tool_round.attempt(_Waits(tool_round.CALL_TIMEOUT - 1), CALL)
    assert outcome == ToolOutcome(text="done")


async def test_what_a_tool_refuses_with_is_its_outcome_and_a_bug_is_a_bug() -> None:
    refused = await tool_round.attempt(_Waits(0, NotFound("There is no such note.")), CALL)
    assert (refused.text, refused.is_error) == ("There is no such note.", True)
    with pytest.raises(ZeroDivisionError):
        await tool_round.attempt(_Waits(0, ZeroDivisionError()), CALL)
