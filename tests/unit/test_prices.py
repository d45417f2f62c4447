"""What calls cost by the lists: known models by their parts, others not at all."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from mira.llm.models import DEFAULTS
from mira.llm.prices import list_price
from mira.messages.turn import Usage

AT = datetime(2026, 11, 1, tzinfo=UTC)


def test_each_kind_of_token_has_a_price_of_its_own() -> None:
    def price(read: int = 0, cached: int = 0, written: int = 0, answered: int = 0) -> Decimal:
        usage = Usage(
            input_tokens=read, cache_read_tokens=cached, cache_write_tokens=written,
            output_tokens=answered,
        )  # fmt: skip
        found = list_price("anthropic", "claude-sonnet-4-5", usage, AT)
        assert found is not None
        return found

    # As listed for that model: 3 dollars for a million tokens read, .30 from the cache, 3.75
    # written to it, 15 answered.
    assert price(read=10_000) == Decimal("0.03")
    assert price(cached=10_000) == Decimal("0.003")
    assert price(written=10_000) == Decimal("0.0375")
    assert price(answered=10_000) == Decimal("0.15")
    assert price(10_000, 10_000, 10_000, 10_000) == Decimal("0.2205")
    assert price() == 0


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_the_models_that_are_used_where_none_is_named_have_a_price(provider: str) -> None:
    for model in (DEFAULTS[provider].main, DEFAULTS[provider].quick):
        found = list_price(provider, model, Usage(input_tokens=1000), AT)
        assert found is not None, model
        assert found > 0


def test_a_model_of_this_machine_costs_nothing_and_one_in_no_list_is_not_known() -> None:
    usage = Usage(input_tokens=1000)
    assert list_price("local", "smollm2", usage, AT) == 0
    assert list_price("openai", "one-of-my-own", usage, AT) is None
    assert list_price("a provider", "one-of-my-own", usage, AT) is None
