"""A tool's arguments as a model gives them: no call may make a later request impossible."""

from __future__ import annotations

import json

import pytest

from mira.errors import ProviderMalformed
from mira.llm.anthropic_request import messages
from mira.llm.base import Request
from mira.llm.text import DEEPEST, arguments
from mira.messages.content import Role, Said, Text, ToolResult, ToolUse


def _nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


@pytest.mark.parametrize("levels", [DEEPEST + 1, 600, 5000])
def test_arguments_nested_without_end_are_malformed(levels: int) -> None:
    with pytest.raises(ProviderMalformed):
        arguments(_nested(levels), "p")


def test_arguments_nested_as_deep_as_anybody_needs_are_taken() -> None:
    assert arguments(_nested(DEEPEST - 1), "p") == _nested(DEEPEST - 1)


@pytest.mark.parametrize("stored", [_nested(600), _nested(5000), "[1]", "{broken"])
def test_a_stored_call_that_cannot_be_read_does_not_stop_the_thread(stored: str) -> None:
    request = Request(
        system=(),
        messages=(
            Said(role=Role.USER, blocks=(Text(text="Do it."),)),
            Said(role=Role.ASSISTANT, blocks=(ToolUse(call_id="c", name="t", arguments=stored),)),
            Said(role=Role.TOOL, blocks=(ToolResult(call_id="c", text="no", is_error=True),)),
            Said(role=Role.USER, blocks=(Text(text="Go on."),)),
        ),
    )
    assert "unreadable" in json.dumps(messages(request, "anthropic:m"))
