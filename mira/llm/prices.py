"""What a call cost, by the list price of its model on the day it was made.

Prices are those that the package genai-prices brings along: no call is made for them, and a newer
version of it knows newer ones. What was agreed on with a provider is not known to it.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from types import ModuleType

from mira.llm import local
from mira.messages.turn import Usage


def list_price(provider: str, model: str, usage: Usage, at: datetime) -> Decimal | None:
    """US dollars for a call of a provider; 0 for a model of this machine, None if no list has the
    model. The first time it takes up to a second, in which the lists are read.
    """
    if provider == local.PROVIDER:
        return Decimal(0)
    prices = _lists()
    whole = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    try:
        found = prices.calc_price(
            prices.Usage(
                input_tokens=whole,
                cache_read_tokens=usage.cache_read_tokens,
                cache_write_tokens=usage.cache_write_tokens,
                output_tokens=usage.output_tokens,
            ),
            model_ref=model,
            provider_id=provider,
            genai_request_timestamp=at,
        )
    except LookupError:
        return None
    total: Decimal = found.total_price
    return total


@lru_cache(maxsize=1)
def _lists() -> ModuleType:
    # Read when they are asked for the first time: most starts never do.
    import genai_prices

    return genai_prices
