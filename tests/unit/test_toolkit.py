"""What a tool promises the model, and how it takes what the model answers."""

from __future__ import annotations

import json
from typing import Annotated, Any
from uuid import UUID

import msgspec
import pytest

from mira.errors import NotFound
from mira.messages.tool import ToolCall, ToolOutcome
from mira.toolkit import MOST_RESULT, Context, Parameters, Tool, operation
from tools.memory_tool import MemoryTool


class Add(Parameters, frozen=True, kw_only=True):
    left: Annotated[int, msgspec.Meta(description="the first number")]
    right: int = 0
    unit: str = ""


class Say(Parameters, frozen=True, kw_only=True):
    text: str
    unit: int = 1


class SampleTool(Tool):
    name = "sample_tool"
    line = "A sample."
    parallel_safe = True

    @operation
    async def add(self, ctx: Context, p: Add) -> str:
        """add two numbers"""
        return f"{p.left + p.right}{p.unit}"

    @operation
    async def say(self, ctx: Context, p: Say) -> str:
        """say it so many times"""
        if not p.text:
            raise NotFound("There is nothing to say.")
        return p.text * p.unit


NOBODY: Any = None


async def _call(arguments: str) -> ToolOutcome:
    turn = UUID(int=1)
    call = ToolCall(turn_id=turn, call_id="c", name="sample_tool", arguments=arguments)
    return await SampleTool().call(NOBODY, call)


def test_the_description_names_every_operation_with_its_parameters() -> None:
    description = SampleTool.description()
    assert description.description.splitlines() == [
        "A sample.",
        "- add(left, right?, unit?): add two numbers",
        "- say(text, unit?): say it so many times",
    ]
    assert description.parallel_safe
    assert not description.effect


def test_the_schema_is_one_object_that_holds_all_operations() -> None:
    schema = json.loads(SampleTool.description().parameters)
    assert schema["type"] == "object"
    assert schema["required"] == ["operation"]
    assert schema["properties"]["operation"]["enum"] == ["add", "say"]
    assert schema["properties"]["left"] == {"description": "the first number", "type": "integer"}
    assert schema["properties"]["unit"] == {"anyOf": [{"type": "string"}, {"type": "integer"}]}


def test_the_schema_of_the_memory_tool_needs_no_references() -> None:
    assert "$ref" not in MemoryTool.description().parameters


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"operation": "add", "left": 2, "right": 3}', "5"),
        # Numbers in quotes, nulls for what is not used, parameters of another operation.
        ('{"operation": "add", "left": "2", "right": null, "text": "x"}', "2"),
        ('{"operation": "say", "text": "ab", "unit": 2, "left": 7}', "abab"),
    ],
)
async def test_what_a_model_means_is_taken(arguments: str, text: str) -> None:
    assert await _call(arguments) == ToolOutcome(text=text)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "`operation` must be one of: add, say."),
        ("[1]", "The arguments are not a JSON object."),
        ("{", "The arguments are not a JSON object."),
        ('{"operation": "fly"}', "`operation` must be one of: add, say."),
        ('{"operation": ["add"]}', "`operation` must be one of: add, say."),
        ('{"operation": "add"}', "add: Object missing required field `left`."),
        ('{"operation": "add", "left": 1, "colour": 2}', "add: Object contains unknown field"),
        ('{"operation": "say", "text": ""}', "There is nothing to say."),
    ],
)
async def test_what_is_wrong_is_told_to_the_model(arguments: str, said: str) -> None:
    outcome = await _call(arguments)
    assert outcome.is_error
    assert outcome.text.startswith(said)


@pytest.mark.anyio
async def test_a_long_result_is_cut_and_says_so() -> None:
    unit = MOST_RESULT // 100 + 100
    outcome = await _call(json.dumps({"operation": "say", "text": "x" * 100, "unit": unit}))
    assert outcome.text.startswith("x" * MOST_RESULT)
    assert outcome.text.endswith("[cut: 10000 characters more]")


@pytest.mark.anyio
async def test_a_result_that_is_too_long_for_a_prompt_is_whole_all_the_same() -> None:
    outcome = await _call(json.dumps({"operation": "say", "text": "x" * 100, "unit": 1000}))
    assert outcome.text == "x" * 100_000


def test_a_tool_without_operations_cannot_be_defined() -> None:
    with pytest.raises(TypeError, match="marks no operation"):
        type("Empty", (Tool,), {})


def test_an_operation_must_take_parameters() -> None:
    async def wrong(self: object, ctx: Context, p: int) -> str:
        return ""

    wrong.__is_operation__ = True  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="must take"):
        type("Wrong", (Tool,), {"wrong": wrong})
