"""The benchmark of how well a model reads messages, and the messages that it holds models to."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from bench.subcortex import asked, summed
from bench.subcortex_messages import MESSAGES
from mira.clock import SystemClock
from mira.errors import ProviderOutage
from mira.ids import SystemIds
from mira.llm.routing import Policy, Routing
from mira.llm.scripted import Answer, ScriptedProvider, says
from mira.messages.subcortex import Complexity

pytestmark = pytest.mark.anyio


def model(*script: Answer) -> Routing:
    clock = SystemClock()
    return Routing(
        [ScriptedProvider(script, clock=clock)], clock, SystemIds(), policy=Policy(attempts=1)
    )


def test_sixty_messages_of_both_kinds_are_labelled() -> None:
    assert len({one.words for one in MESSAGES}) == 60
    assert Counter(one.label for one in MESSAGES) == dict.fromkeys(Complexity, 30)
    assert sum(bool(one.said) for one in MESSAGES) >= 10
    assert sum(bool(one.about) for one in MESSAGES) >= 30


async def test_a_model_that_keeps_the_rule_is_found_to_keep_it() -> None:
    script = [
        says(
            json.dumps(
                {
                    "phrases": [group[0] for group in one.about] or ["small talk"],
                    "entities": [], "keep": [], "complexity": one.label,
                }
            )
        )
        for one in MESSAGES
    ]  # fmt: skip
    routing = model(*script)
    rows = [await asked(routing, one, SystemClock()) for one in MESSAGES]
    figures = summed(rows, deadline=60.0)
    assert figures["complexity, right"] == 1
    assert figures["phrases name what is meant"] == 1
    assert figures["readable"] == 1
    assert figures["within 60 s"] == 1


async def test_a_model_that_fails_or_raves_is_found_to_do_so() -> None:
    routing = model(says("The cat was a cat."), ProviderOutage("down"))
    rows = [await asked(routing, one, SystemClock()) for one in (MESSAGES[0], MESSAGES[-1])]
    figures = summed(rows, deadline=60.0)
    assert figures["readable"] == 0
    # What cannot be read is taken for complex, and that is right for one of them.
    assert figures["straightforward ones, right"] == 0
    assert figures["complex ones, right"] == 1
    assert figures["within 60 s"] == 0.5
