"""What a prompt costs, counted with o200k_base: the promise of the default set of sections."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bench.provider_cache import PrefixCache
from mira.llm import local
from mira.llm.base import Request, SystemBlock
from mira.prompt.layout import Prompt
from tests.support.prompt import body, composer, inputs, section
from tests.support.tokens import PER_MESSAGE, count
from tests.unit.prompt.typical import day

BASE = 1_500
TYPICAL = 8_300
CACHED = 3_300
COMPACT = 350


def texts(sent: dict[str, Any]) -> list[tuple[str, bool]]:
    """Every block that is sent, in order, and whether a mark stands at its end."""
    blocks = [*sent["system"], *(block for one in sent["messages"] for block in one["content"])]
    return [(block["text"], "cache_control" in block) for block in blocks]


def tokens(sent: dict[str, Any]) -> int:
    return sum(count(text) for text, _ in texts(sent)) + PER_MESSAGE * len(sent["messages"])


def cached(before: Prompt, after: Prompt) -> int:
    """Tokens of `after` that the provider has read before: those up to the last mark of `before`,
    if they are the same."""
    old, new = texts(body(before)), texts(body(after))
    end = max(number for number, (_, marked) in enumerate(old, 1) if marked)
    assert [text for text, _ in old[:end]] == [text for text, _ in new[:end]]
    return sum(count(text) for text, _ in old[:end])


def test_the_base_prompt_is_within_its_budget() -> None:
    assert count(section(composer().compose(inputs()), "BasePrompt")) <= BASE


@pytest.mark.parametrize("live", [0, 1, 5, 10])
def test_a_typical_prompt_is_within_its_budget_and_most_of_it_is_cached(live: int) -> None:
    before, after = (composer().compose(day(n)) for n in (live, live + 1))
    assert tokens(body(after)) <= TYPICAL
    assert cached(before, after) >= CACHED


def test_all_that_one_turn_writes_to_the_cache_the_next_one_reads() -> None:
    cache = PrefixCache()
    before, after = (body(composer().compose(day(n))) for n in (4, 5))
    read, written, _ = cache.account(before)
    assert (read, written > CACHED) == (0, True)
    assert cache.account(after)[0] == written


def test_the_estimate_is_near_what_the_tokenizer_counts_and_not_below() -> None:
    prompt = composer().compose(day(8))
    counted = tokens(body(prompt))
    assert counted <= prompt.tokens_estimated <= counted * 1.35


def test_the_system_prompt_of_a_small_model_is_short_and_reaches_it() -> None:
    prompt = composer().compose(msgspec.structs.replace(day(8), compact=True))
    system = tuple(SystemBlock(text=text) for text, _ in prompt.system)
    assert sum(count(block.text) for block in system) <= COMPACT
    request = Request(system=system, messages=prompt.messages)
    fitted, dropped = local.fit(request, local.PROMPT_TOKENS)
    assert "most of the system prompt" not in dropped
    assert fitted.messages[-1] == prompt.messages[-1]
